"""The summary of a run (spec 09, 2 to 4 and its worked examples)."""

from __future__ import annotations

import copy
import pickle

import pytest

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.records.records import FleetRecords, RunRecords
from dynamo_sim.report.summary import DISTRIBUTIONS, EXTRA_FIELDS, HOST_FIELDS, summarise
from dynamo_sim.workload.request import Outcome, Request
from tests.report.run_records import records_of, rejected, served, sla, toy_run

COUNTS = {
    "num_requests",
    "completed_requests",
    "total_input_tokens",
    "total_output_tokens",
    "prefill_gpus_per_worker",
    "decode_gpus_per_worker",
    "goodput_completed_requests",
    "processed_tokens",
    "rejected_requests",
    "failed_requests",
    "unfinished_requests",
    "preemptions",
    "scale_changes",
    "within_sla_requests",
}

HEAD = [
    "num_requests",
    "completed_requests",
    "total_input_tokens",
    "total_output_tokens",
    "duration_ms",
    "wall_time_ms",
    "request_throughput_rps",
    "input_throughput_tok_s",
    "output_throughput_tok_s",
    "total_throughput_tok_s",
    "prefill_worker_seconds",
    "decode_worker_seconds",
    "prefill_gpus_per_worker",
    "decode_gpus_per_worker",
    "gpu_hours",
    "goodput_completed_requests",
    "goodput_request_throughput_rps",
    "goodput_output_throughput_tok_s",
    "processed_tokens",
    "processed_tokens_per_s",
    "processed_output_tokens_per_s",
    "prefix_cache_reused_ratio",
    "first_admission_prefix_cache_reused_ratio",
]


def two_requests() -> RunRecords:
    times = [[10.0, 11.0, 12.0, 110.0], [50.0]]
    return records_of(
        [served(0, 0.0, times[0]), served(1, 0.0, times[1])],
        times,
        fleets=[FleetRecords(worker_seconds=0.11)],
    )


def test_keys_come_in_the_order_of_the_reference() -> None:
    statistics = ("mean", "min", "max", "median", "p75", "p90", "p95", "p99", "std")
    expected = HEAD + [f"{statistic}_{name}" for name in DISTRIBUTIONS for statistic in statistics]
    summary = summarise(toy_run(30), sla(ttft_ms=100.0), wall_time_ms=5.0)
    assert list(summary.as_reference()) == expected
    assert list(summary) == [*expected, *EXTRA_FIELDS]


def test_counts_are_whole_and_all_else_is_float() -> None:
    for records in (toy_run(30), RunRecords()):
        summary = summarise(records, sla(itl_ms=1.0), wall_time_ms=5.0)
        assert {name for name, value in summary.items() if type(value) is int} == COUNTS
        assert {type(value) for value in summary.values()} == {int, float}


def test_every_gap_weighs_alike_in_itl_and_every_request_in_tpot() -> None:
    summary = summarise(two_requests())
    assert summary.mean_tpot_ms == summary.max_tpot_ms == 100 / 3
    assert (summary.median_itl_ms, summary.p75_itl_ms, summary.max_itl_ms) == (1.0, 98.0, 98.0)
    assert summary.mean_ttst_ms == 1.0
    assert summary.max_output_token_throughput_per_user == 1000.0
    assert summary.min_output_token_throughput_per_user == 1000.0 / 98.0
    assert summary.mean_ttft_ms == 30.0 and summary.mean_e2e_latency_ms == 80.0


def test_gaps_of_zero_are_in_itl_but_have_no_rate() -> None:
    times = [[10.0, 10.0, 12.0]]
    summary = summarise(records_of([served(0, 0.0, times[0])], times))
    assert (summary.min_itl_ms, summary.mean_itl_ms) == (0.0, 1.0)
    assert (
        summary.min_output_token_throughput_per_user == summary.mean_output_token_throughput_per_user == 500.0
    )
    assert summary.min_ttst_ms == 0.0


def test_a_request_counts_once_it_has_a_token_also_if_it_never_finished() -> None:
    cut = served(0, 0.0, [22.470831, 28.372629, 34.274427], input_tokens=8, output_tokens=10)
    waiting = served(1, 30.0, [1.0], input_tokens=7, output_tokens=5)
    waiting.first_admit_ms = waiting.first_token_ms = waiting.last_token_ms = None
    summary = summarise(records_of([cut, waiting], []))
    assert (summary.num_requests, summary.completed_requests, summary.total_output_tokens) == (2, 1, 10)
    assert summary.duration_ms == 34.274427


def test_goodput_divides_by_the_requested_length() -> None:
    cut = served(0, 0.0, [22.470831, 28.37, 34.27, 40.176225], input_tokens=8, output_tokens=10)
    records = records_of([cut], [])
    good = summarise(records, sla(itl_ms=2.0))
    assert good.goodput_completed_requests == 1
    assert good.goodput_output_throughput_tok_s == 10 / 0.040176225
    assert summarise(records, sla(itl_ms=1.9)).goodput_completed_requests == 0


def test_bounds_of_the_sla_are_inclusive() -> None:
    records = two_requests()
    assert summarise(records, sla(ttft_ms=10.0)).goodput_completed_requests == 1
    assert summarise(records, sla(ttft_ms=50.0)).goodput_completed_requests == 2
    assert summarise(records, sla(e2e_ms=109.9)).goodput_completed_requests == 1
    assert summarise(records, sla(e2e_ms=110.0, itl_ms=1.0)).goodput_completed_requests == 1
    assert summarise(records, sla(ttft_ms=0.0)).goodput_completed_requests == 0


def test_a_request_for_one_token_meets_any_bound_on_gaps() -> None:
    records = records_of([served(0, 0.0, [50.0])], [])
    assert summarise(records, sla(itl_ms=0.0)).goodput_completed_requests == 1


def test_without_a_bound_there_is_no_goodput() -> None:
    for bounds in (None, sla()):
        assert not [name for name in summarise(two_requests(), bounds) if name.startswith("goodput")]


def test_only_completed_requests_are_within_the_sla_and_all_that_arrived_are_the_base() -> None:
    done, cut, failed = (served(i, 0.0, [1.0, 2.0], output_tokens=2 if i != 1 else 9) for i in range(3))
    failed.outcome = Outcome.FAILED
    waiting = Request(4, 0.0, 10, 10)
    summary = summarise(records_of([done, cut, failed, rejected(3, 0.0), waiting], []), sla(ttft_ms=5.0))
    assert (summary.within_sla_requests, summary.within_sla) == (1, 0.2)
    assert (summary.rejected_requests, summary.failed_requests, summary.unfinished_requests) == (1, 1, 2)
    assert summary.goodput_completed_requests == 2  # the reference takes the request that was cut off as good


def test_preemptions_and_scale_changes_are_counted() -> None:
    records = toy_run(30)
    records.requests[0].preemptions, records.requests[5].preemptions = 2, 1
    assert (summarise(records).preemptions, summarise(records).scale_changes) == (3, 3)


def test_lengths_have_distributions() -> None:
    requests = [served(i, 0.0, [1.0], input_tokens=100 * i) for i in (1, 2, 4)]
    summary = summarise(records_of(requests, []))
    assert (summary.median_input_tokens, summary.max_input_tokens, summary.mean_output_tokens) == (
        200,
        400,
        1,
    )


def test_nothing_served_is_all_zero_but_worker_time() -> None:
    summary = summarise(
        RunRecords(requests=[rejected(0, 0.0), rejected(1, 7.0)], fleets=[FleetRecords(worker_seconds=0.014)])
    )
    assert summary.num_requests == 2 and summary.decode_worker_seconds == 0.014
    others = {
        "num_requests",
        "rejected_requests",
        "decode_worker_seconds",
        "decode_gpus_per_worker",
        "gpu_hours",
    }
    assert {value for name, value in summary.items() if name not in others} == {0}


def test_reuse_is_the_largest_and_the_first_of_any_admission() -> None:
    request = served(0, 0.0, [10.0], input_tokens=100)
    request.first_reused_tokens, request.reused_tokens = 20, 50
    summary = summarise(records_of([request], []))
    assert summary.prefix_cache_reused_ratio == 0.5
    assert summary.first_admission_prefix_cache_reused_ratio == 0.2


def test_gpu_hours_count_all_gpus_of_all_workers() -> None:
    records = two_requests()
    records.fleets[0].gpus_per_worker = 8
    summary = summarise(records)
    assert summary.gpu_hours == 0.11 * 8 / 3600.0
    assert (summary.prefill_worker_seconds, summary.prefill_gpus_per_worker) == (0.0, 0)


def test_order_of_requests_and_gaps_changes_no_bit() -> None:
    records = toy_run(60)
    mirrored = copy.copy(records)
    mirrored.requests = records.requests[::-1]
    mirrored.gaps = records.gaps[::-1]
    assert summarise(records) == summarise(mirrored)


def test_the_speed_of_the_simulator_is_there_only_when_it_was_measured() -> None:
    summary = summarise(two_requests())
    assert not set(HOST_FIELDS) & set(summary)
    timed = summary.with_wall_time(500.0)
    assert timed.processed_tokens_per_s == timed.processed_tokens / 500.0 * 1000.0
    assert timed.with_wall_time(250.0).wall_time_ms == 250.0
    assert timed.without_wall_time() == summary
    assert list(timed.without_wall_time()) == list(summary)


def test_a_misspelt_field_is_an_error_that_names_the_right_one() -> None:
    with pytest.raises(AttributeError, match="did you mean 'p99_ttft_ms'"):
        _ = summarise(RunRecords()).p99_tfft_ms


def test_a_summary_can_be_sent_to_another_process() -> None:
    summary = summarise(two_requests())
    assert pickle.loads(pickle.dumps(summary)) == summary
    assert copy.deepcopy(summary).mean_ttft_ms == summary.mean_ttft_ms
    assert "mean_ttft_ms" in dir(summary)


def test_gaps_of_workers_are_put_together() -> None:
    one, other = GapLog(), GapLog()
    one.add(0.0, 1.0, 2)
    other.add(0.0, 4.0, 1)
    request = served(0, 0.0, [1.0, 2.0])
    assert summarise(RunRecords(requests=[request], gaps=[one, other])).mean_itl_ms == 2.0
