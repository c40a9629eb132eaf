"""Routers of users: what they see, and what is said when they go wrong."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.routing.modes.custom import RouterError, checked_router, load_router
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run
from tests.routing.modes.loads import MODES, answer, random_scenario

CASES = int(os.environ.get("DYNAMO_SIM_ROUTER_CASES", "40"))

SMALL = Scenario.from_dict(
    {
        "name": "small",
        "workload": {"kind": "synthetic", "input_tokens": 64, "output_tokens": 4, "request_count": 8},
        "fleet": {"workers": 3, "engine": {"num_gpu_blocks": 256}},
    }
)


class Answers:
    """Answers what it was made with."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def pick(self, request: Any, workers: Sequence[Any], now_ms: float) -> Any:
        answer = self.answers[request.index % len(self.answers)]
        return answer(request, workers, now_ms) if callable(answer) else answer


class Unprintable:
    """Something that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not yet")


def failure(router: Any, scenario: Scenario = SMALL) -> str:
    with pytest.raises(RouterError) as caught:
        run(scenario, router=router)
    return str(caught.value)


def test_a_router_sends_requests_where_it_says() -> None:
    result = run(SMALL, router=Answers(2, np.int64(0)))
    assert [request.worker_id for request in result.records.requests] == [2, 0] * 4


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "returned None, which is no id of a worker; the active workers are 0, 1, 2"),
        (True, "returned True, which is no id of a worker; the active workers are 0, 1, 2"),
        (1.0, "returned 1.0, which is no id of a worker; the active workers are 0, 1, 2"),
        ("1", "returned '1', which is no id of a worker; the active workers are 0, 1, 2"),
        (3, "returned 3, which is the id of no active worker; the active workers are 0, 1, 2"),
        (-1, "returned -1, which is the id of no active worker; the active workers are 0, 1, 2"),
        (
            lambda r, workers, t: 10**5000,
            "returned a number of thousands of digits, which is the id of no active worker; ",
        ),
        (lambda r, workers, t: workers[0], "returned a worker instead of its id; return worker.id"),
        (
            Unprintable(),
            "returned an object of Unprintable, whose text cannot be made, which is no id of a worker; ",
        ),
        (lambda r, workers, t: [][0], "raised IndexError: list index out of range (test_custom.py, line "),
        (lambda r, workers, t: sys.exit(), "raised SystemExit (test_custom.py, line "),
        (lambda r, workers, t: setattr(workers[0], "in_flight", 0), "raised AttributeError: "),
        (lambda r, workers, t: setattr(r, "input_tokens", 1), "raised AttributeError: "),
        (lambda r, workers, t: workers.clear(), "raised AttributeError: "),
    ],
)
def test_a_wrong_answer_is_one_line(answer: Any, said: str) -> None:
    line = failure(Answers(answer))
    assert line.startswith(f"the router Answers at 0 ms, asked about request 0, {said}")
    assert "\n" not in line


def test_a_draining_worker_is_named_as_such() -> None:
    scenario = SMALL.with_(
        **{
            "workload.arrival_interval_ms": 10,
            "workload.output_tokens": 400,
            "scaling": [{"at_ms": 15, "workers": 2}],
        }
    )
    line = failure(Answers(2), scenario)
    assert line == (
        "the router Answers at 20 ms, asked about turn 0 of session 'session_2', returned 2, a worker that is "
        "draining and takes no requests; the active workers are 0, 1"
    )


def test_one_worker_is_asked_about_too() -> None:
    assert "the active worker is 0" in failure(Answers(None), SMALL.with_(**{"fleet.workers": 1}))


def test_what_a_router_sees() -> None:
    seen: list[tuple[Any, ...]] = []

    class Looks:
        def pick(self, request: Any, workers: Sequence[Any], now_ms: float) -> int:
            loads = [(worker.id, worker.in_flight, worker.waiting, worker.kv_usage) for worker in workers]
            seen.append((request.index, request.session_id, request.input_tokens, now_ms, loads))
            assert len(request.prefix_blocks) <= request.input_tokens // request.block_tokens
            repr(request), repr(workers)
            return 0

    run(SMALL.with_(**{"workload.request_count": 2, "workload.arrival_interval_ms": 1}), router=Looks())
    assert [row[:2] + row[2:4] for row in seen] == [(0, None, 64, 0.0), (1, None, 64, 1.0)]
    assert seen[0][4] == [(0, 0, 0, 0.0), (1, 0, 0, 0.0), (2, 0, 0, 0.0)]
    assert seen[1][4][0][:3] == (0, 1, 0) and seen[1][4][0][3] > 0


def test_prefix_blocks_are_equal_as_far_as_prompts_are() -> None:
    blocks: list[tuple[int, ...]] = []

    class Keeps:
        def pick(self, request: Any, workers: Sequence[Any], now_ms: float) -> int:
            blocks.append(request.prefix_blocks)
            return 0

    shared = {
        "workload.input_tokens": 256,
        "workload.shared_prefix_ratio": 0.5,
        "workload.num_prefix_groups": 1,
    }
    run(SMALL.with_(**shared, **{"workload.request_count": 2}), router=Keeps())
    common = [one == other for one, other in zip(*blocks, strict=True)]
    assert common == [True] * common.count(True) + [False] * common.count(False)
    assert common.count(True) == 128 // SMALL.fleet.engine.block_size


def test_a_class_beside_the_scenario_is_found(tmp_path: Path) -> None:
    (tmp_path / "my_fixed_router.py").write_text(
        "class Fixed:\n"
        "    def __init__(self, worker=0):\n"
        "        self.worker = worker\n"
        "    def pick(self, request, workers, now_ms):\n"
        "        return workers[self.worker].id\n",
        encoding="utf-8",
    )
    data = SMALL.to_dict() | {
        "routing": {"mode": "custom", "class": "my_fixed_router:Fixed", "options": {"worker": 1}}
    }
    result = run(Scenario.from_dict(data, base_dir=tmp_path))
    assert {request.worker_id for request in result.records.requests} == {1}
    with pytest.raises(RouterError, match=r"my_fixed_router:Fixed .* IndexError.*my_fixed_router.py, line 5"):
        run(
            Scenario.from_dict(
                data | {"routing": data["routing"] | {"options": {"worker": 9}}}, base_dir=tmp_path
            )
        )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("os:mkdir", "router os:mkdir: 'mkdir' is not a class with a method pick(request, workers, now_ms)"),
        (
            "nowhere_at_all:X",
            "router nowhere_at_all:X: there is no module 'nowhere_at_all' beside the scenario",
        ),
        ("nowhere", "a custom router is named as module:Class, like my_router:Sticky, got 'nowhere'"),
    ],
)
def test_a_class_that_cannot_be_used_is_one_line(name: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_router(name)
    assert str(caught.value).startswith(said)


def test_an_object_is_a_router_when_it_can_pick() -> None:
    class TooFew:
        def pick(self, request: Any) -> int:
            return 0

    class Later:
        async def pick(self, request: Any, workers: Any, now_ms: float) -> int:
            return 0

    for candidate, said in (
        (object(), "router object: has no method pick(request, workers, now_ms)"),
        (Answers, "router type: is a class; give an object: Answers(...)"),
        (TooFew(), "router TooFew: pick must take (request, workers, now_ms), found pick(request: 'Any')"),
        (Later(), "router Later: pick must be a plain function, not async"),
    ):
        with pytest.raises(ScenarioError) as caught:
            checked_router(candidate)
        assert str(caught.value).startswith(said)


def misbehaving(draw: random.Random) -> Any:
    """A router that is well-behaved at first, and then answers or does something wrong."""
    wrong = draw.choice(
        [
            None, True, 0.0, float("nan"), "0", 10**30, -1, [0], object(), np.float64(1.0), np.bool_(True),
            lambda r, w, t: 1 / 0,
            lambda r, w, t: sys.exit(2),
            lambda r, w, t: setattr(r, "arrival_ms", 0.0),
            lambda r, w, t: w[0].nothing,
            lambda r, w, t: w.append(None),
            lambda r, w, t: max(worker.id for worker in w) + 1,
            lambda r, w, t: w,
        ]
    )  # fmt: skip
    good = draw.randint(0, 10)
    asked = iter(range(10**9))

    def pick(request: Any, workers: Sequence[Any], now_ms: float) -> Any:
        if next(asked) < good:
            return workers[request.index % len(workers)].id
        return wrong(request, workers, now_ms) if callable(wrong) else wrong

    return Answers(pick)


def test_whatever_a_router_does_ends_in_a_result_or_in_one_line_that_names_it() -> None:
    failed = 0
    for case in range(CASES):
        draw = random.Random(f"misbehaving {case}")
        routing = draw.choice([{"mode": "round_robin"}, MODES[4], MODES[8]])
        try:
            run(random_scenario(11, case, routing), router=misbehaving(draw))
        except RouterError as error:
            failed += 1
            assert str(error).startswith("the router Answers at ") and "\n" not in str(error)
            assert error.at_ms >= 0
        except SimulationError as error:
            assert "dead end" in str(error) or "worker" in str(error)
    assert failed > CASES / 3


class Rotates:
    """By its own count, as a user might."""

    def __init__(self) -> None:
        self.count = 0

    def pick(self, request: Any, workers: Sequence[Any], now_ms: float) -> int:
        self.count += 1
        busiest_last = sorted(workers, key=lambda worker: (worker.waiting, worker.kv_usage, worker.id))
        return int(busiest_last[self.count % 2 if len(workers) > 1 else 0].id)


def test_stretches_change_nothing_a_router_sees() -> None:
    for case in range(CASES // 4):
        for routing in ({"mode": "round_robin"}, MODES[4]):
            scenario = random_scenario(12, case, routing)
            single_passes = scenario.with_(**{"limits.max_stretch_passes": 1})
            assert answer(scenario, Rotates()) == answer(single_passes, Rotates()), case
