"""As many workers as a queue, or any other total, needs (`spec 10, 5`)."""

from __future__ import annotations

from dynamo_sim.autoscaling import Bounds, ProportionalPolicy, QueueProportionalPolicy
from dynamo_sim.scenario.autoscaler.proportional import ProportionalScaling
from dynamo_sim.scenario.autoscaler.queue_proportional import QueueProportionalScaling
from tests.autoscaling.policies.policy_driver import ask


def test_the_queue_scales_up_at_once_and_down_after_fewer_have_been_enough() -> None:
    policy = QueueProportionalPolicy(
        QueueProportionalScaling(per_worker=10, slack=1, hold_s=60), Bounds(1, 9)
    )
    assert ask(policy, 0, 1, router_queue=25, waiting=14).target == 5  # ceil(39 / 10) + 1
    assert ask(policy, 15, 5, router_queue=0, waiting=22).reason == "holding"
    assert ask(policy, 30, 5, router_queue=0, waiting=8).reason == "holding"
    assert (
        ask(policy, 75, 5, router_queue=0, waiting=0).target == 4
    )  # the largest fleet desired in the last 60 s
    assert ask(policy, 91, 4, router_queue=0, waiting=0).target == 1
    assert ask(policy, 120, 1).target is None


def test_running_requests_count_by_their_weight() -> None:
    policy = QueueProportionalPolicy(QueueProportionalScaling(per_worker=10, include_in_flight=True))
    assert ask(policy, 0, 1, router_queue=5, waiting=10, running=20).target == 4
    half = QueueProportionalPolicy(QueueProportionalScaling(per_worker=10, include_in_flight=0.5))
    assert ask(half, 0, 1, router_queue=5, waiting=10, running=20).target == 3


def test_a_total_needs_no_more_while_workers_start() -> None:
    policy = ProportionalPolicy(ProportionalScaling(metric="in_flight", per_worker=10), Bounds(1, 64))
    sizes = [1]
    for at_s in range(15, 180, 15):
        sizes.append(ask(policy, at_s, sizes[-1], starting=sizes[-1] - 1, in_flight=24).target or 0)
    assert sizes == [1] + [3] * 11


def test_reasons_name_the_limit_that_held() -> None:
    policy = ProportionalPolicy(ProportionalScaling(metric="in_flight", per_worker=10), Bounds(2, 4))
    found = [ask(policy, at_s, 3, in_flight=load) for at_s, load in enumerate([35, 25, 99])]
    assert [(d.target, d.desired, d.reason) for d in found] == [
        (4, 4, "scale out"),
        (3, 3, "enough"),
        (4, 10, "at the largest fleet"),
    ]
    assert ask(policy, 9, 2, in_flight=0).reason == "at the smallest fleet"
