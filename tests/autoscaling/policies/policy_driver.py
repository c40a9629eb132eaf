"""Asks a policy by hand, evaluation by evaluation."""

from __future__ import annotations

from dynamo_sim.autoscaling import Decision, FleetView, Policy, StaticView, WorkerPhase, WorkerView


def ask(
    policy: Policy,
    now_s: float,
    workers: int,
    starting: int = 0,
    warming: int = 0,
    **values: float | None,
) -> Decision:
    """One decision about some workers, with these values of metrics.

    Args:
        policy: who decides.
        now_s: when.
        workers: all of them; those that are neither starting nor warming are there from the beginning.
        starting: of them, not ready.
        warming: of them, ready from now on.
        values: by name of a metric.
    """
    old = workers - starting - warming
    views = [WorkerView(i, WorkerPhase.READY, 0.0, 0.0) for i in range(old)]
    views += [WorkerView(old + i, WorkerPhase.READY, now_s, now_s) for i in range(warming)]
    views += [WorkerView(old + warming + i, WorkerPhase.LOADING, now_s) for i in range(starting)]
    decision = policy.decide(now_s, StaticView(values), FleetView(tuple(views)))
    assert isinstance(decision, Decision)
    return decision
