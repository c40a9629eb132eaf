"""What one sees of the lower cache tiers, and that runs without them show nothing of them."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_sim.report.result import RunResult
from dynamo_sim.report.rows import request_rows
from dynamo_sim.report.table import explained_lines
from dynamo_sim.report.tier_figures import ROW_FIELDS
from dynamo_sim.simulation import run
from tests.kv.offload.test_worked_scenarios import ABA, scenario


def result(**fleet: Any) -> RunResult:
    """A prompt whose last block comes back from the host (`spec 11`, the second of its worked scenarios)."""
    return run(scenario(list(ABA), fleet, 1_000_000, num_gpu_blocks=8))


def test_the_summary_says_from_which_tier_prompts_came() -> None:
    summary = result().summary
    assert summary["gpu_reused_ratio"] == pytest.approx(12 / 48)
    assert summary["host_reused_ratio"] == pytest.approx(4 / 48)
    assert (summary["swap_in_requests"], summary["mean_swap_in_wait_ms"]) == (1, 1.0)


def test_the_summary_says_what_each_link_carried_and_for_how_long() -> None:
    summary = result().summary
    assert (summary["g1_to_g2_gigabytes"], summary["g1_to_g2_busy_s"]) == (0.002, 0.002)
    assert (summary["g2_to_g1_gigabytes"], summary["g2_to_g1_busy_s"]) == (0.001, 0.001)
    assert "g2_to_g3_gigabytes" not in summary


def test_a_request_says_what_came_back_for_it() -> None:
    answer = result()
    row = request_rows(answer.records)[2]
    assert (row["host_reused_tokens"], row["swap_ins"], row["swap_in_wait_ms"]) == (4, 1, 1.0)
    assert answer.requests["host_reused_tokens"].tolist() == [0, 0, 4]


def test_the_printed_figures_tell_it_in_words() -> None:
    assert "Swap-ins: 1 requests waited 1.00 ms each" in explained_lines(result().summary)


def test_a_run_without_lower_tiers_shows_nothing_of_them() -> None:
    answer = result(offload=False)
    assert not any(name in answer.summary for name in ("gpu_reused_ratio", "dropped_blocks"))
    assert not any(name in request_rows(answer.records)[0] for name in ROW_FIELDS)
    assert not any(name in answer.requests for name in ROW_FIELDS)


def test_without_the_switch_the_arguments_change_nothing_and_one_is_told_so() -> None:
    from dynamo_sim.scenario.effects import notes

    with_arguments = scenario(list(ABA), {"offload": False}, 1_000_000, num_gpu_blocks=8)
    assert any(
        "fleet.engine.num_g2_blocks: only with fleet.offload: true" in note for note in notes(with_arguments)
    )
    without = with_arguments.with_(**{"fleet.engine.num_g2_blocks": None})
    assert request_rows(run(with_arguments).records) == request_rows(run(without).records)
