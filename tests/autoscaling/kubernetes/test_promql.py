"""Pasted queries are mapped by name, function and range, or refused by the construct that has no counterpart.

Rules: `spec 10, 8.4`.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dynamo_sim.autoscaling import MetricQuery
from dynamo_sim.autoscaling.build import build_autoscaler
from dynamo_sim.autoscaling.kubernetes.manifests.advice import NOTHING_FITS, map_line, map_line_of_query
from dynamo_sim.autoscaling.kubernetes.manifests.load import load_manifest
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.kubernetes.promql.names import find_series
from dynamo_sim.autoscaling.kubernetes.promql.reading import parse_promql
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import Scenario

WORKLOAD = {"kind": "synthetic", "input_tokens": 8, "output_tokens": 2, "request_count": 1}

Q = MetricQuery


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("sum(vllm:num_requests_waiting)", Q("waiting", reduce="sum")),
        ("sum(vllm_num_requests_waiting{model_name=~'a|b', pod!=\"x\"})", Q("waiting", reduce="sum")),
        ("max by (model_name) (sglang:token_usage)", Q("kv_usage", reduce="max")),
        ("avg(vllm:gpu_cache_usage_perc) * 100", Q("kv_usage", reduce="avg", scale=100.0)),
        ("avg(avg_over_time(vllm:kv_cache_usage_perc[2m]))", Q("kv_usage", "avg", "avg", 120)),
        ("sum(rate(vllm:request_success_total[1m30s]))", Q("requests_finished", "rate", "sum", 90)),
        (
            "sum(increase(sglang:prompt_tokens_total[5m])) / 300",
            Q("prompt_tokens", "increase", "sum", 300, 1 / 300),
        ),
        ("dynamo_frontend_inflight_requests", Q("in_flight", reduce="sum")),
        ("sum(dynamo_frontend_router_queue_pending_requests)", Q("router_queue", reduce="sum")),
        (
            "histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[2m])))",
            Q("ttft", "p95", "merge", 120, 0.001),
        ),
        (
            "1000 * histogram_quantile(.999, "
            "sum(increase(dynamo_frontend_inter_token_latency_seconds_bucket[1m])) by (le))",
            Q("itl", "p99.9", "merge", 60, 1.0),
        ),
        (
            "max(histogram_quantile(0.5, sum by (le, pod) (rate(sglang:e2e_request_latency_seconds_bucket[1m]))))",
            Q("e2e", "p50", "max", 60, 0.001),
        ),
        (
            "sum(rate(vllm:e2e_request_latency_seconds_sum[1m]))"
            " / sum(rate(vllm:e2e_request_latency_seconds_count[1m]))",
            Q("e2e", "mean", "merge", 60, 0.001),
        ),
        ("sum(rate(vllm:time_to_first_token_seconds_count[1m]))", Q("ttft", "rate", "sum", 60, 1.0)),
        (
            "sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)",
            Q("in_flight", reduce="sum"),
        ),
        ("sum(vllm:num_requests_running + vllm:num_requests_waiting)", Q("in_flight", reduce="sum")),
        (
            "sum(rate(vllm:prefix_cache_hits_total[5m])) / sum(rate(vllm:prefix_cache_queries_total[5m]))",
            Q("prefix_hit_rate", "rate", "merge", 300),
        ),
        ("(sum((vllm:num_requests_waiting)))", Q("waiting", reduce="sum")),
        ("# how many wait\nsum( # of all\n vllm:num_requests_waiting)#\n", Q("waiting", reduce="sum")),
        (
            "histogram_quantile(0.9999999, sum by (le) (rate(vllm:inter_token_latency_seconds_bucket[1m])))",
            Q("itl", "p99.99999", "merge", 60, 0.001),
        ),
    ],
)
def test_a_query_is_understood(text: str, query: MetricQuery) -> None:
    mapped = parse_promql(text)
    assert mapped.query == query
    assert not mapped.per_worker


@pytest.mark.parametrize(
    "text",
    [
        "vllm:num_requests_waiting",
        "avg_over_time(vllm:num_requests_waiting[1m])",
        "sum by (pod) (vllm:num_requests_waiting)",
    ],
)
def test_a_query_may_leave_one_series_a_worker(text: str) -> None:
    assert parse_promql(text).per_worker


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("sum(vllm:num_requests_waiting) or vector(1)", r"or vector\(1\) with another number than 0"),
        (
            "sum(vllm:num_requests_waiting) or sum(vllm:num_requests_running)",
            r"or with anything but vector\(0\)",
        ),
        ("sum(vllm:num_requests_waiting) or on() vector(0)", r"or with anything but vector\(0\)"),
        ("sum(vllm:num_requests_waiting) or", r"or with anything but vector\(0\)"),
        ("vllm:num_requests_waiting or vector(0)", r"write sum\(\.\.\.\) or vector\(0\)"),
        ("5 or vector(0)", r"or vector\(0\) behind a number"),
        ("sum(vllm:num_requests_waiting) unless vector(0)", "unless is not understood"),
        ("irate(vllm:request_success_total[1m])", r"irate\(\)"),
        ("topk(3, vllm:num_requests_waiting)", r"topk\(\)"),
        ("absent(vllm:num_requests_waiting)", r"absent\(\)"),
        ("max_over_time(vllm:num_requests_waiting[5m])", r"max_over_time\(\)"),
        ("sum(vllm:num_requests_waiting offset 5m)", "offset"),
        ("sum(vllm:num_requests_waiting @ 1)", "'@'"),
        ("avg_over_time(sum(vllm:num_requests_waiting)[5m:1m])", r"subquery \[5m:1m\]"),
        ("rate(vllm:request_success_total[$__rate_interval])", r"range \[\$__rate_interval\]"),
        ("sum(vllm:num_requests_waiting) > 5", "'>'"),
        ("sum(vllm:num_requests_waiting) / on(pod) sum(vllm:num_requests_running)", "on is not"),
        (
            "sum(vllm:num_requests_waiting) / sum(vllm:num_requests_running)",
            "'/' between waiting and running",
        ),
        ("sum(vllm:num_requests_waiting) + 1", r"'\+' with a number"),
        ("sum(vllm:num_requests_waiting) * -1", r"a factor of -1"),
        ("sum(vllm:num_requests_waiting) * 0", r"a factor of 0"),
        ("sum(vllm:num_requests_waiting) * 1e400", r"a factor of inf"),
        ("# nothing", "the end of the query"),
        ("sum(my_queue)", "no counterpart of the metric my_queue"),
        ("sum(DCGM_FI_DEV_GPU_UTIL)", "no counterpart of the metric DCGM_FI_DEV_GPU_UTIL"),
        ("sum(vllm:request_success_total)", r"a counter without rate\(\)"),
        ("rate(vllm:num_requests_waiting[1m])", "which is no counter"),
        (
            "histogram_quantile(0.9, sum(vllm:time_to_first_token_seconds_bucket) by (le))",
            r"without rate\(\)",
        ),
        (
            "histogram_quantile(0.9, avg(rate(vllm:time_to_first_token_seconds_bucket[1m])) by (le))",
            r"of avg\(\)",
        ),
        (
            "histogram_quantile(95, sum(rate(vllm:time_to_first_token_seconds_bucket[1m])) by (le))",
            "from 0 to 1",
        ),
        ("vllm:time_to_first_token_seconds", r"a histogram without histogram_quantile\(\)"),
        ("sum(rate(vllm:time_to_first_token_seconds_sum[1m]))", "the sum of a histogram alone"),
        ("vllm:num_requests_waiting[5m]", "outside of rate"),
        ('{__name__="vllm:num_requests_waiting"}', "without a metric name"),
        ("sum(", "the end of the query"),
        ("sum(vllm:num_requests_waiting", r"expected '\)'"),
        ("42", "reads no metric"),
        ("", "the end of the query"),
        ("sum(vllm:num_requests_waiting) %", "'%'"),
        ("quantile(0.9, vllm:num_requests_waiting)", r"quantile\(\)"),
    ],
)
def test_a_query_is_refused_by_its_construct(text: str, construct: str) -> None:
    with pytest.raises(ValueError, match=construct):
        parse_promql(text)


def scaled_object(query: str, name: str = "") -> dict[str, Any]:
    named = {"name": name} if name else {}
    trigger = {"type": "prometheus", **named, "metadata": {"query": query, "threshold": "5"}}
    return {"kind": "ScaledObject", "metadata": {"name": "x"}, "spec": {"triggers": [trigger]}}


def problem_of(data: dict[str, Any], options: ManifestOptions | None = None) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_manifest(data, options)
    (line,) = caught.value.problems
    return line


@pytest.mark.parametrize(
    ("query", "name", "stands_for"),
    [
        ("sum(my_queue)", "", Q("waiting", reduce="sum")),
        ("sum(my_queue)", "queue", Q("waiting", reduce="sum")),
        ("sum(vllm:num_requests_running) or vector(1)", "q", Q("running", reduce="sum")),
        ("avg(DCGM_FI_DEV_GPU_UTIL{pod=~'vllm.*'})", "", Q("busy", "rate", "avg", 60, 100.0)),
        ("max(my_gpu_utilization)", "g", Q("busy", "rate", "max", 60, 100.0)),
        ("avg(vllm:gpu_cache_usage_factor)", "", Q("kv_usage", reduce="avg")),
        ("sum(vllm:num_requests_waiting) / count(vllm:num_requests_waiting)", "", Q("waiting", reduce="avg")),
        ("sum(tgi_queue_size)", "", Q("waiting", reduce="sum")),
        ("sum(rate(istio_requests_total[2m]))", "", Q("requests_started", "rate", "sum", 120)),
        ("sum(kthena_router_active_downstream_requests)", "", Q("in_flight", reduce="sum")),
        (
            'histogram_quantile(0.9,\n sum(irate(vllm:time_to_first_token_seconds_bucket{a="b"}[5m])) by (le))',
            "",
            Q("ttft", "p90", "merge", 300, 0.001),
        ),
        ("sum(irate(vllm:request_success_total[2m]))", "r", Q("requests_finished", "rate", "sum", 120)),
    ],
)
def test_the_line_that_is_advised_can_be_pasted(query: str, name: str, stands_for: MetricQuery) -> None:
    manifest = scaled_object(query, name)
    before, line = problem_of(manifest).split("; say what the query stands for beside the manifest: ")
    assert before.startswith("manifest (ScaledObject x): spec.triggers[0].metadata.query: ")
    section = {"manifest": manifest, **yaml.safe_load(line)}
    assert list(section["metric_map"]) == [name or query]
    scenario = Scenario.from_dict({"name": "x", "workload": WORKLOAD, "autoscaler": section})
    assert scenario.autoscaler is not None
    built = build_autoscaler(scenario.autoscaler, scenario)
    assert built._loops[0].policy.reads == (stands_for,)  # type: ignore[attr-defined]
    assert not any("metric_map" in warning for warning in built.warnings)


@pytest.mark.parametrize(
    "query",
    [
        "max_over_time(sglang:cache_hit_rate[2m])",
        "sum(rate(vllm:num_requests_waiting[1m]))",  # how fast a queue changes
        "sum(rate(vllm:num_requests_waiting[1m])) / sum(vllm:num_requests_running)",
        "sum(rate(vllm:request_success_total[1m]) > bool 0)",
        "sum(vllm:num_requests_waiting) * 2 + 1",
        "sum(vllm:num_requests_waiting offset 5m)",
        "max(wva_desired_replicas)",
        "sum(nodes_of_another_planet)",
        "",
    ],
)
def test_where_nothing_fits_no_line_is_advised(query: str) -> None:
    assert map_line_of_query(query, "q") == ""
    if query:
        assert problem_of(scaled_object(query, "q")).endswith("; " + NOTHING_FITS)


@pytest.mark.parametrize(
    ("name", "total", "stands_for"),
    [
        ("DCGM_FI_DEV_GPU_UTIL", True, Q("busy", "rate", "avg", 60, 100.0)),
        ("vllm:time_to_first_token_seconds_p95", False, Q("ttft", "p95", None, 60, 0.001)),
        ("dynamo_ttft_p99_seconds", True, Q("ttft", "p99", "merge", 60, 0.001)),
        ("e2e_latency_ms_p50", True, Q("e2e", "p50", "merge", 60)),
        ("pool_average_queue_depth", True, Q("waiting", reduce="avg")),
        ("dynamo_frontend_pending_requests", True, Q("router_queue")),
    ],
)
def test_the_line_for_a_name_fits_its_kind(name: str, total: bool, stands_for: MetricQuery) -> None:
    (found,) = yaml.safe_load(map_line(name, total))["metric_map"].values()
    assert Q(**found) == stands_for


def test_names_of_adapters_stand_for_the_metric_behind_them() -> None:
    for name in (
        "vllm:num_requests_waiting",
        "num_requests_waiting",
        "prometheus.googleapis.com|vllm:num_requests_waiting|gauge",
    ):
        found = find_series(name)
        assert found is not None and found.metric == "waiting" and not found.pooled
    mean = ManifestOptions().named("inference_pool_average_queue_size", total=True)
    assert mean == Q("waiting", reduce="avg")


@pytest.mark.parametrize("name", ["my_queue", "vllm:time_to_first_token_seconds", "odd queue: {x}"])
def test_the_line_for_a_named_metric_can_be_pasted_too(name: str) -> None:
    target = {"type": "AverageValue", "averageValue": "5"}
    metrics = [{"type": "External", "external": {"metric": {"name": name}, "target": target}}]
    manifest = {"kind": "HorizontalPodAutoscaler", "spec": {"maxReplicas": 5, "metrics": metrics}}
    line = problem_of(manifest)
    section = {"manifest": manifest, **yaml.safe_load(line[line.index("metric_map:") :])}
    scenario = Scenario.from_dict({"name": "x", "workload": WORKLOAD, "autoscaler": section})
    assert scenario.autoscaler is not None
    assert build_autoscaler(scenario.autoscaler, scenario).warnings == []


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("vllm:num_requests_waiting", "wrap it in sum(...)"),
        (
            "histogram_quantile(0.95, rate(vllm:time_to_first_token_seconds_bucket[1m]))",
            "put sum by (le) (...) around the rate inside histogram_quantile()",
        ),
        (
            "rate(vllm:e2e_request_latency_seconds_sum[1m]) / rate(vllm:e2e_request_latency_seconds_count[1m])",
            "put sum(...) around both sides of the division",
        ),
    ],
)
def test_a_series_a_worker_is_warned_about_with_the_way_to_one(query: str, advice: str) -> None:
    manifest = load_manifest(scaled_object(query))
    (warning,) = manifest.warnings
    assert warning.endswith(f"and KEDA takes only one: with several workers the trigger fails; {advice}")
    assert not manifest.spec.triggers[0].one_series  # type: ignore[union-attr]


def test_entries_of_the_maps_that_nobody_reads_are_reported() -> None:
    maps = ManifestOptions(
        metric_map={"q": Q("waiting", reduce="sum"), "typo": Q("running")}, resource_map={"cpu": Q("busy")}
    )
    manifest = load_manifest(scaled_object("sum(my_queue)", "q"), maps)
    assert manifest.warnings == (
        "metric_map: 'typo' has no effect: no metric that is read has this name",
        "resource_map: 'cpu' has no effect: no metric that is read has this name",
    )


def test_what_has_no_effect_is_noted_once() -> None:
    mapped = parse_promql(
        'sum by (model_name) (vllm:num_requests_running{a="1"} + vllm:num_requests_waiting{a="1"})'
    )
    assert mapped.notes == (
        'the label selectors {a="1"} of vllm:num_requests_running are ignored',
        'the label selectors {a="1"} of vllm:num_requests_waiting are ignored',
        "sum by (model_name) is read as one series for the fleet",
    )
    assert parse_promql("sum(vllm:num_requests_waiting{})").notes == ()


def test_suffixes_belong_to_histograms_only() -> None:
    assert find_series("vllm:num_requests_waiting_count") is None
    found = find_series("vllm_e2e_request_latency_seconds_bucket")
    assert found is not None and (found.metric, found.part, found.scale) == ("e2e", "bucket", 0.001)


@pytest.mark.parametrize(
    ("text", "plain", "or_zero"),
    [
        ("sum(vllm:num_requests_waiting) or vector(0)", "sum(vllm:num_requests_waiting)", True),
        ("(sum(vllm:num_requests_waiting) or vector(0.0)) / 2", "sum(vllm:num_requests_waiting) / 2", True),
        ("sum(vllm:num_requests_waiting) * 2 or vector(0)", "sum(vllm:num_requests_waiting) * 2", True),
        ("max(sum(vllm:num_requests_waiting) or vector(0))", "sum(vllm:num_requests_waiting)", True),
        (
            "(sum(vllm:num_requests_running) or vector(0)) + (sum(vllm:num_requests_waiting) or vector(0))",
            "sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)",
            True,
        ),
        (
            "sum(vllm:num_requests_running) + (sum(vllm:num_requests_waiting) or vector(0))",
            "sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)",
            False,
        ),
        ("sum(vllm:num_requests_waiting)", "sum(vllm:num_requests_waiting)", False),
    ],
)
def test_or_vector_0_is_the_query_before_it_and_0_without_data(text: str, plain: str, or_zero: bool) -> None:
    mapped = parse_promql(text)
    assert (mapped.query, mapped.or_zero) == (parse_promql(plain).query, or_zero)


def test_a_trigger_whose_query_gives_0_without_data_is_never_in_error() -> None:
    mapped = ManifestOptions(metric_map={"own": Q("waiting", reduce="sum")})

    def ignores_null(query: str) -> bool:
        metadata = {"query": query, "threshold": "5", "ignoreNullValues": "false"}
        spec = {"triggers": [{"type": "prometheus", "name": "own" * ("my" in query), "metadata": metadata}]}
        found = load_manifest(
            {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": spec}, mapped
        )
        return found.spec.triggers[0].ignore_null  # type: ignore[union-attr]

    assert not ignores_null("sum(vllm:num_requests_waiting)")
    assert ignores_null("sum(vllm:num_requests_waiting) or vector(0)")
    assert not ignores_null("topk(1, my_queue)")
    assert ignores_null("(topk(1, my_queue) or vector(0))")


def test_or_zero_behind_a_quantile_is_ignored_with_a_note() -> None:
    quantile = "histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))"
    found = parse_promql(f"{quantile} or vector(0)")
    assert found.query == parse_promql(quantile).query and not found.or_zero
    assert any("is NaN" in note for note in found.notes)
