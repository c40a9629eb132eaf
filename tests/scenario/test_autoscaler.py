"""The autoscaler section: every kind of policy builds and runs; what is wrong gets one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml

from dynamo_sim.autoscaling import Decision, HpaPolicy, Loop
from dynamo_sim.autoscaling.build import BUILT_KINDS, build_autoscaler, build_custom
from dynamo_sim.autoscaling.controller import AutoscalerController
from dynamo_sim.cli import main
from dynamo_sim.errors import ScenarioError
from dynamo_sim.metric_catalogue import HISTOGRAMS, METRICS
from dynamo_sim.report.html import decisions_table
from dynamo_sim.scenario import Scenario, load_scenario
from dynamo_sim.scenario.autoscaler import ScalingPolicy
from dynamo_sim.scenario.autoscaler.parts import HistogramName, MetricName
from dynamo_sim.scenario.effects import notes
from dynamo_sim.scenario.schema import scenario_schema
from dynamo_sim.scenario.suggestions import models_of, tags_of
from dynamo_sim.simulation import run

LOAD = """\
name: demo
workload:
  kind: generated
  arrivals: {shape: poisson, rate_rps: 4}
  input_tokens: 256
  output_tokens: 32
  duration_s: 60
fleet: {workers: 2}
sla: {ttft_ms: 500, itl_ms: 50}
autoscaler:
"""

HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: vllm}
spec:
  maxReplicas: 8
  metrics:
    - type: Pods
      pods:
        metric: {name: vllm:num_requests_waiting}
        target: {type: AverageValue, averageValue: 5}
"""

OWN_HPA = {"kind": "hpa", "max_replicas": 4, "metrics": [{"metric": "waiting", "target": 5}]}

SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: so}
spec:
  scaleTargetRef: {name: vllm}
  maxReplicaCount: 6
  minReplicaCount: 1
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: sum(vllm:num_requests_waiting)
        threshold: "10"
"""

KNATIVE = """\
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: llm}
spec:
  template:
    metadata:
      annotations:
        autoscaling.knative.dev/target: "8"
        autoscaling.knative.dev/min-scale: "1"
        autoscaling.knative.dev/max-scale: "6"
"""

SECTIONS = {
    "fixed": "policy: {kind: fixed, count: 3}",
    "schedule": """
policy:
  kind: schedule
  at_ms: [{t: 0, target: 2}, {t: 30000, target: 5}]
  cron: [{start: 0 8 * * *, end: 0 18 * * *, timezone: Europe/Berlin, target: 4}]
  default: 1
  start_of_run: 2025-01-06T07:59:30+01:00
""",
    "target_tracking": """
policy: {kind: target_tracking, metric: in_flight, target: 4, window_s: 30, over: avg, scale_in_cooldown_s: 60}
period_s: 10
min_workers: 1
max_workers: 8
""",
    "step_scaling": """
policy:
  kind: step_scaling
  warmup_s: 30
  alarms:
    - {metric: ttft, over: p95, threshold: 300, direction: up, steps: [{lower: 0, adjustment: 1}]}
    - metric: busy
      threshold: 0.2
      direction: down
      evaluation_periods: 3
      datapoints: 2
      adjustment_type: PercentChangeInCapacity
      steps: [{upper: 0, adjustment: -20}]
period_s: 15
min_workers: 1
""",
    "proportional": "policy: {kind: proportional, metric: in_flight, per_worker: 4, hold_s: 20}\nmin_workers: 1",
    "queue_proportional": "policy: {kind: queue_proportional, per_worker: 4, include_in_flight: true, hold_s: 20}",
    "predictive": """
policy:
  kind: predictive
  metric: requests_started
  per_worker: 2
  bin_s: 10
  method: linear
  floor_policy: {kind: queue_proportional, per_worker: 4, include_in_flight: 1}
max_gpus: 8
""",
    "hpa": """
policy:
  kind: hpa
  max_replicas: 8
  metrics: [{metric: waiting, target: 0.5}, {metric: in_flight, source: External, target: 10, target_type: Value}]
  behavior: {scale_up: {rules: [{type: Pods, value: 2, period_s: 60}], stabilization_window_s: 0}}
  sync_period_s: 10
""",
    "hpa from a text": "policy:\n  kind: hpa\n  manifest: |\n"
    + "".join(f"    {x}\n" for x in HPA.splitlines()),
    "keda": """
policy:
  kind: keda
  min_replicas: 1
  max_replicas: 6
  triggers:
    - {kind: metric, name: load, metric: waiting, threshold: 4}
    - {kind: cron, name: day, start: 0 8 * * *, end: 0 18 * * *, desired: 3}
  fallback: {failure_threshold: 3, replicas: 2}
  modifiers: {formula: load + day, target: 4}
""",
    "kpa": "policy: {kind: kpa, target: 8, min_scale: 1, max_scale: 6, window_s: 30}",
    "sla": "policy: {kind: sla, mode: both, itl_ms: 40}",
    "custom": "policy: {kind: custom, class: 'my_policy:Mine', options: {count: 4}}",
    "manifest": "policy: {manifest: hpa.yaml}",
    "manifest beside the times": "manifest: both.yaml\nname: so\ntolerance: 0.2\nfirst_at_s: 5",
    "manifest as documents": yaml.safe_dump({"policy": {"manifest": yaml.safe_load(KNATIVE)}}),
    "manifest as a list": yaml.safe_dump({"manifest": [yaml.safe_load(SCALED_OBJECT)]}),
}


def write(folder: Path, section: str) -> Path:
    (folder / "hpa.yaml").write_text(HPA)
    (folder / "both.yaml").write_text(f"{HPA}---\n{SCALED_OBJECT}")
    (folder / "my_policy.py").write_text(
        "class Mine:\n"
        "    reads = ('waiting',)\n"
        "    def __init__(self, count):\n"
        "        self.count = count\n"
        "    def decide(self, now_s, view, fleet):\n"
        "        return self.count\n"
    )
    body = "".join(f"  {line}\n" for line in section.strip().splitlines())
    (folder / "x.yaml").write_text(LOAD + body)
    return folder / "x.yaml"


def built(scenario: Scenario) -> AutoscalerController:
    assert scenario.autoscaler is not None
    return build_autoscaler(scenario.autoscaler, scenario)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_kind_builds_and_runs(name: str, tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, SECTIONS[name]))
    result = run(scenario)
    assert len(result.decisions) > 0
    assert result.summary["completed_requests"] > 100


@pytest.mark.parametrize("name", SECTIONS)
def test_every_kind_survives_being_written_out_and_copied(name: str, tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, SECTIONS[name]))
    again = Scenario.from_dict(scenario.to_dict(), tmp_path)
    assert again == scenario
    assert scenario.with_(seed=3).autoscaler == scenario.autoscaler


@pytest.mark.parametrize("name", SECTIONS)
def test_every_kind_agrees_with_the_schema(name: str, tmp_path: Path) -> None:
    data = yaml.safe_load(
        write(tmp_path, SECTIONS[name].replace("2025-", "'2025-").replace("+01:00", "+01:00'")).read_text()
    )
    jsonschema.Draft202012Validator(scenario_schema()).validate(data)


def test_kinds_of_the_section_and_of_the_builder_are_the_same() -> None:
    kinds = {tag for model in models_of(ScalingPolicy) for tag in tags_of(model)}
    assert kinds == BUILT_KINDS
    assert kinds - {"dynamo_planner"} <= {name.split()[0] for name in SECTIONS}


def test_metrics_of_the_section_are_those_of_the_catalogue() -> None:
    assert get_args(MetricName) == tuple(METRICS)
    assert get_args(HistogramName) == HISTOGRAMS


# ---------------------------------------------------------------- what is built


def test_times_of_the_section_win(tmp_path: Path) -> None:
    controller = built(load_scenario(write(tmp_path, SECTIONS["target_tracking"] + "first_at_s: 3\n")))
    (loop,) = controller._loops
    assert (loop.name, loop.period_s, loop.start_s) == ("target_tracking", 10.0, 3.0)
    controller = built(load_scenario(write(tmp_path, SECTIONS["custom"] + "\nperiod_s: 7")))
    (loop,) = controller._loops
    assert (loop.name, loop.period_s, loop.start_s) == ("my_policy:Mine", 7.0, 7.0)


def test_options_reach_a_manifest(tmp_path: Path) -> None:
    controller = built(load_scenario(write(tmp_path, SECTIONS["manifest beside the times"])))
    operator, hpa = controller._loops
    assert operator.start_s == hpa.start_s == 5
    assert isinstance(hpa.policy, HpaPolicy) and hpa.policy.flags.tolerance == 0.2


def test_resources_and_metrics_are_mapped(tmp_path: Path) -> None:
    section = """
policy:
  manifest:
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: vllm}
    spec:
      maxReplicas: 4
      metrics:
        - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}
        - {type: Pods, pods: {metric: {name: queue_ms}, target: {type: AverageValue, averageValue: 5}}}
  resource_map: {cpu: busy}
  metric_map: {queue_ms: {metric: queue_time, over: p95, window_s: 60}}
"""
    (loop,) = built(load_scenario(write(tmp_path, section)))._loops
    assert isinstance(loop.policy, HpaPolicy)
    assert str(loop.policy.spec.metrics[1].query) == "p95(queue_time)[60s]"
    assert loop.policy.spec.metrics[0].query.metric == "busy"


def test_totals_are_sums_where_it_is_not_said(tmp_path: Path) -> None:
    (loop,) = built(load_scenario(write(tmp_path, SECTIONS["hpa"])))._loops
    assert isinstance(loop.policy, HpaPolicy)
    pods, external = loop.policy.spec.metrics
    assert pods.query.reduce == "avg" and external.query.reduce == "sum"
    assert pods.target == 500


def test_bounds_budget_and_metrics_are_handed_on(tmp_path: Path) -> None:
    section = SECTIONS["fixed"] + (
        "\nmin_workers: 1\nmax_workers: 9\nmax_gpus: 4\nmetrics: {scrape_interval_s: 5, buckets: {ttft: [100, 200]}}"
    )
    scenario = load_scenario(write(tmp_path, section), ["fleet.engine.aic_tp_size=2"])
    controller = built(scenario)
    assert controller._bounds is not None and controller._bounds.max_workers == 9
    assert controller._budget is not None and controller._budget(9) == 2
    assert controller._settings.scrape_interval_s == 5 and controller._settings.buckets == {
        "ttft": (100.0, 200.0)
    }


def test_warnings_of_manifests_and_of_targets_out_of_reach(tmp_path: Path) -> None:
    section = """
policy:
  kind: hpa
  max_replicas: 8
  metrics: [{metric: running, target: 400}]
max_workers: 4
"""
    warnings = built(load_scenario(write(tmp_path, section))).warnings
    assert any("never adds a worker" in line for line in warnings)
    assert any("at most 4 workers" in line for line in warnings)
    (tmp_path / "odd.yaml").write_text(HPA + "---\nkind: Deployment\nmetadata: {name: d}\n")
    warnings = built(load_scenario(write(tmp_path, "manifest: odd.yaml"))).warnings
    assert any("Deployment" in line for line in warnings)
    assert any(
        "Deployment" in line for line in run(load_scenario(write(tmp_path, "manifest: odd.yaml"))).warnings
    )


# ---------------------------------------------------------------- objects in a notebook


class Mine:
    def decide(self, now_s: float, view: Any, fleet: Any) -> Any:
        return Decision(3, "mine")


def test_an_object_runs_in_place_of_the_section(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, SECTIONS["fixed"] + "\nmax_workers: 2\nfirst_at_s: 1"))
    controller = build_custom(Mine(), scenario, scenario.autoscaler)
    (loop,) = controller._loops
    assert (loop.name, loop.start_s, loop.period_s) == ("Mine", 1.0, 15.0)
    assert {row["target"] for row in run(scenario, policy=Mine()).records.decisions} == {2}


def test_an_object_with_loops_keeps_their_times(tmp_path: Path) -> None:
    class Two:
        loops = (Loop("a", Mine(), 3.0), Loop("b", Mine(), 5.0))

    scenario = load_scenario(write(tmp_path, SECTIONS["fixed"]))
    assert [loop.period_s for loop in build_custom(Two(), scenario)._loops] == [3.0, 5.0]


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, SECTIONS["fixed"]))
    with pytest.raises(ScenarioError, match="has no method decide"):
        build_custom(3, scenario)
    with pytest.raises(ScenarioError, match="is a class"):
        build_custom(Mine, scenario)


# ---------------------------------------------------------------- wrong sections: a line with its place

MALFORMED = {
    "no policy": (
        "min_workers: 1",
        "x.yaml:10:1: autoscaler.policy: missing; an autoscaler needs a policy or a manifest",
    ),
    "unknown kind": (
        "policy: {kind: target_traking, target: 3}",
        "x.yaml:11:18: autoscaler.policy.kind: found 'target_traking'; must be one of 'fixed', 'schedule', "
        "'target_tracking', 'step_scaling', 'proportional', 'queue_proportional', 'predictive', 'hpa', 'keda', 'kpa', "
        "'sla', 'dynamo_planner', 'custom', 'manifest'; did you mean 'target_tracking'?",
    ),
    "unknown key": (
        "policy: {kind: kpa, traget: 3}",
        "x.yaml:11:23: autoscaler.policy.traget: unknown key; did you mean 'target'?",
    ),
    "key of another kind": (
        "policy: {kind: fixed, count: 3, per_worker: 4}",
        "x.yaml:11:35: autoscaler.policy.per_worker: unknown key; 'per_worker' belongs to kind 'proportional', "
        "'queue_proportional', 'predictive'",
    ),
    "unknown key of a custom policy": (
        "policy: {kind: custom, clas: 'a:b'}",
        "x.yaml:11:3: autoscaler.policy.class: missing, and has no default\n"
        "x.yaml:11:26: autoscaler.policy.clas: unknown key; did you mean 'class'?",
    ),
    "no cron expression": (
        "policy: {kind: schedule, cron: [{start: 8 am, end: 0 99 * * *, target: 3}]}",
        "x.yaml:11:43: autoscaler.policy.cron.0.start: found '8 am'; must be a cron expression of five fields like "
        "0 8 * * 1-5\nx.yaml:11:54: autoscaler.policy.cron.0.end: found '0 99 * * *'; must be a cron expression like "
        "0 8 * * 1-5 (Bad hour)",
    ),
    "no time zone": (
        "policy: {kind: keda, triggers: [{kind: cron, start: 0 8 * * *, end: 0 9 * * *, timezone: Mars, desired: 3}]}",
        "x.yaml:11:92: autoscaler.policy.triggers.0.timezone: found 'Mars'; must be a time zone like Europe",
    ),
    "two targets at one time": (
        "policy: {kind: schedule, at_ms: [{t: 5, target: 3}, {t: 7, target: 1}, {t: 5.0, target: 4}]}",
        "x.yaml:11:78: autoscaler.policy.at_ms.2.t: found 5, the time of at_ms.0, whose target is 3, too; must differ",
    ),
    "a target too small": (
        "policy: {kind: target_tracking, metric: waiting, target: 1e-300}",
        "x.yaml:11:60: autoscaler.policy.target: found 1e-300; must be at least 1e-06",
    ),
    "a share too small": (
        "policy: {kind: queue_proportional, per_worker: 1e-300}",
        "x.yaml:11:50: autoscaler.policy.per_worker: found 1e-300; must be at least 1e-06",
    ),
    "a scale too large": (
        "policy: {kind: target_tracking, metric: waiting, target: 1, scale: 1e300}",
        "x.yaml:11:70: autoscaler.policy.scale: found 1e+300; must be at most 1000000000000",
    ),
    "a step too large": (
        "policy: {kind: step_scaling, alarms: [{metric: ttft, threshold: 3, direction: up, steps: [{adjustment: "
        "1e30}]}]}",
        "x.yaml:11:106: autoscaler.policy.alarms.0.steps.0.adjustment: found 1e+30; must be at most 10000000",
    ),
    "no class": (
        "policy: {kind: custom, class: pol}",
        "x.yaml:11:33: autoscaler.policy.class: found 'pol'; must be module:Class, like my_policy:Halfway",
    ),
    "unknown metric": (
        "policy: {kind: target_tracking, metric: wating, target: 3}",
        "x.yaml:11:43: autoscaler.policy.metric: found 'wating'; must be one of",
    ),
    "metric asked the wrong way": (
        "policy: {kind: target_tracking, metric: waiting, over: p95, target: 3}",
        "x.yaml:11:58: autoscaler.policy.over: found 'p95'; must be last or avg for waiting, a gauge",
    ),
    "unknown key of a mapped metric": (
        "policy: {manifest: hpa.yaml, metric_map: {a: {metric: busy, windw_s: 3}}}",
        "x.yaml:11:63: autoscaler.policy.metric_map.a.windw_s: unknown key; did you mean 'window_s'?",
    ),
    "no such file": (
        "manifest: none.yaml",
        "x.yaml:11:13: autoscaler.manifest: found 'none.yaml'; no such file: ",
    ),
    "manifest beside a policy": (
        "policy: {kind: fixed, count: 1}\nmanifest: hpa.yaml",
        "x.yaml:12:13: autoscaler.manifest: cannot be given together with policy",
    ),
    "manifest beside keys": (
        "policy: {kind: hpa, manifest: hpa.yaml, max_replicas: 3}",
        "x.yaml:11:57: autoscaler.policy.max_replicas: is not possible with a manifest, which says it itself",
    ),
    "option beside a policy": (
        "policy: {kind: hpa, manifest: hpa.yaml}\ntolerance: 0.2",
        "x.yaml:12:14: autoscaler.tolerance: belongs in the policy",
    ),
    "period of a policy with its own": (
        "manifest: hpa.yaml\nperiod_s: 5",
        "x.yaml:12:13: autoscaler.period_s: is not possible here: a manifest has times of its own",
    ),
    "bounds": (
        "policy: {kind: fixed, count: 1}\nmin_workers: 5\nmax_workers: 3",
        "x.yaml:13:16: autoscaler.max_workers: found 3; must be at least min_workers, 5",
    ),
    "budget": (
        "policy: {kind: fixed, count: 1}\nmin_workers: 5\nmax_gpus: 3",
        "x.yaml:13:13: autoscaler.max_gpus: found 3; must be at least 5, what the smallest fleet needs",
    ),
    "buckets": (
        "policy: {kind: fixed, count: 1}\nmetrics: {buckets: {ttft: [200, 100]}}",
        "x.yaml:12:29: autoscaler.metrics.buckets.ttft: must be numbers that rise",
    ),
    "deep inside": (
        "policy: {kind: step_scaling, alarms: [{metric: ttft, threshold: 3, direction: upp, steps: [{}]}]}",
        "x.yaml:11:81: autoscaler.policy.alarms.0.direction: found 'upp'; must be one of 'up', 'down';"
        " did you mean 'up'?\nx.yaml:11:86: autoscaler.policy.alarms.0.steps.0.adjustment: missing, and has no default",
    ),
    "no alarms": (
        "policy: {kind: step_scaling, alarms: []}",
        "x.yaml:11:40: autoscaler.policy.alarms: must have at least 1 item",
    ),
    "buckets of a gauge": (
        "policy: {kind: fixed, count: 1}\nmetrics: {buckets: {waiting: [1]}}",
        "x.yaml:12:32: autoscaler.metrics.buckets.waiting: found 'waiting'; must be one of 'ttft'",
    ),
    "a key far from its place": (
        "policy: {kind: fixed, count: 1, metric_map: {}}",
        "x.yaml:11:35: autoscaler.policy.metric_map: unknown key; 'metric_map' belongs to kind 'hpa', 'keda', 'kpa', "
        "'manifest'",
    ),
    "an hpa without anything": (
        "policy: {kind: hpa}",
        "x.yaml:11:3: autoscaler.policy.max_replicas: missing; an hpa needs it, or a manifest\n"
        "x.yaml:11:3: autoscaler.policy.metrics: missing; an hpa needs at least one, or a manifest",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_wrong_section_is_told_with_its_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, wanted = MALFORMED[name]
    write(tmp_path, section)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        load_scenario("x.yaml")
    assert str(caught.value).startswith(wanted)


# ---------------------------------------------------------------- odd manifests: one clear line

ODD = {
    "a template": (HPA.replace("maxReplicas: 8", "maxReplicas: {{ .Values.max }}"), "render it first"),
    "not YAML": ("kind: [\nx: }", "is no YAML"),
    "no autoscaler": ("kind: Deployment\nmetadata: {name: d}\n", "there is no autoscaler in it"),
    "two of them": (f"{HPA}---\n{SCALED_OBJECT}", "say which by its name"),
    "cpu without a meaning": (
        HPA.replace(
            "pods:\n        metric: {name: vllm:num_requests_waiting}", "resource:\n        name: cpu"
        ).replace("type: Pods", "type: Resource"),
        "resource_map: {cpu: busy}",
    ),
    "unknown metric": (HPA.replace("vllm:num_requests_waiting", "my_metric"), "metric_map"),
    "scale to zero": (
        HPA.replace("maxReplicas: 8", "maxReplicas: 8\n  minReplicas: 0"),
        "scale_to_zero: true",
    ),
    "no maximum": (HPA.replace("maxReplicas: 8", "minReplicas: 1"), "maxReplicas: is missing"),
    "misspelt key": (HPA.replace("maxReplicas", "maxReplica"), "maxReplica"),
    "a trigger we do not have": (SCALED_OBJECT.replace("type: prometheus", "type: kafka"), "kafka"),
    "a query we cannot read": (
        SCALED_OBJECT.replace("sum(vllm", "sum(predict_linear(vllm").replace("waiting)", "waiting[5m], 60))"),
        "query",
    ),
    "a job": ("apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: j}\n", "ScaledJob"),
    "an empty file": ("", "there is no autoscaler in it"),
    "another class": (
        KNATIVE.replace(
            'autoscaling.knative.dev/target: "8"',
            "autoscaling.knative.dev/class: hpa.autoscaling.knative.dev",
        ),
        "kpa.autoscaling.knative.dev",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_manifest_gets_a_clear_line(name: str, tmp_path: Path) -> None:
    text, wanted = ODD[name]
    (tmp_path / "odd.yaml").write_text(text)
    scenario = load_scenario(write(tmp_path, "manifest: odd.yaml"))
    with pytest.raises(ScenarioError) as caught:
        run(scenario)
    assert any(wanted in line for line in caught.value.problems)
    assert all("\n" not in line and "odd.yaml" in line for line in caught.value.problems)


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        ("policy: {kind: hpa, manifest: both.yaml, name: so}", "kind 'keda', not 'hpa'"),
        ("policy: {kind: custom, class: 'nowhere:Mine'}", "there is no module 'nowhere'"),
        ("policy: {kind: custom, class: 'my_policy:Yours'}", "has no 'Yours'"),
        ("policy: {kind: custom, class: 'my_policy:Mine'}", "cannot be made with {}"),
        (
            "policy: {kind: keda, triggers: [{kind: metric, metric: waiting, threshold: 3}], "
            "modifiers: {formula: a + 1, target: 3}}",
            "no trigger named 'a'",
        ),
        ("policy: {kind: dynamo_planner, config: {mode: agg}}", "dynamo_planner needs"),
    ],
)
def test_what_is_found_at_the_start_of_a_run_is_one_line(section: str, wanted: str, tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, section))
    try:
        run(scenario)
    except ScenarioError as error:
        (line,) = error.problems
        assert wanted in line and "\n" not in line
    else:
        assert "dynamo_planner" in section, "the planner package may be here"


# ---------------------------------------------------------------- beside other sections


def test_not_together_with_a_script(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="autoscaler: cannot be given together with scaling"):
        load_scenario(write(tmp_path, SECTIONS["fixed"]), ["scaling=[{at_ms: 5, workers: 3}]"])


def test_sla_needs_its_targets(tmp_path: Path) -> None:
    with pytest.raises(
        ScenarioError, match=r"autoscaler\.policy\.ttft_ms: missing; give it here, or sla\.ttft_ms"
    ):
        load_scenario(write(tmp_path, SECTIONS["sla"]), ["sla={}"])


def test_notes_on_what_does_nothing(tmp_path: Path) -> None:
    section = SECTIONS["fixed"] + "\nperiod_s: 4\nmax_workers: 1\nmetrics: {perfect: true, scrape_delay_s: 3}"
    found = notes(load_scenario(write(tmp_path, section), ["fleet.engine.startup_time=3"]))
    assert len(found) == 3
    assert [line.split(":")[0] for line in found] == [
        "autoscaler.period_s",
        "autoscaler.metrics.scrape_delay_s",
        "fleet.workers",
    ]


RECORDS = {
    "mooncake": [{"timestamp": 0, "input_length": 8, "output_length": 2, "hash_ids": [1]}],
    "agentic_mooncake": [
        {
            "session_id": "a",
            "request_id": "r",
            "timestamp": 0,
            "input_length": 8,
            "output_length": 2,
            "hash_ids": [1],
        }
    ],
}


@pytest.mark.parametrize("trace_format", RECORDS)
def test_traces_of_every_format_and_a_cap_on_time(trace_format: str) -> None:
    scenario = Scenario.from_dict(
        {
            "name": "demo",
            "workload": {"kind": "trace", "format": trace_format, "records": RECORDS[trace_format]},
            "limits": {"max_sim_time_ms": 5000},
            "autoscaler": {"policy": {"kind": "fixed", "count": 2}},
        }
    )
    assert run(scenario).summary["completed_requests"] == 1


def test_a_closed_loop_is_honoured() -> None:
    scenario = Scenario.from_dict(
        {
            "name": "demo",
            "workload": {"kind": "synthetic", "input_tokens": 64, "output_tokens": 4, "request_count": 12},
            "limits": {"concurrency": 2},
            "autoscaler": {"policy": {"kind": "fixed", "count": 2}},
        }
    )
    assert run(scenario).summary["completed_requests"] == 12


def test_set_changes_a_policy(tmp_path: Path) -> None:
    file = write(tmp_path, SECTIONS["fixed"])
    scenario = load_scenario(file, ["autoscaler.policy.count=5"])
    assert scenario.autoscaler is not None and scenario.autoscaler.policy is not None
    assert scenario.autoscaler.policy.kind == "fixed" and scenario.autoscaler.policy.count == 5
    assert isinstance(
        built(load_scenario(file, ["autoscaler={manifest: both.yaml, name: so}"])), AutoscalerController
    )


def test_validate_reads_manifests_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.yaml").write_text(HPA + "---\nkind: Deployment\nmetadata: {name: d}\n")
    file = write(tmp_path, "manifest: odd.yaml\nmax_workers: 4")
    assert main(["validate", str(file)]) == 0
    said = capsys.readouterr().out
    assert "warning: " in said and "Deployment" in said and "at most 4 workers" in said
    (tmp_path / "odd.yaml").write_text(HPA.replace("maxReplicas: 8", "maxReplicas: many"))
    assert main(["validate", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{file}: odd.yaml:5 (HorizontalPodAutoscaler vllm): spec.maxReplicas: must be")


@pytest.mark.parametrize(
    ("start", "manifest", "override", "called"),
    [
        ("elsewhere", "odd.yaml", None, "odd.yaml"),
        ("elsewhere", "../odd.yaml", None, "../odd.yaml"),
        (".", "../odd.yaml", None, "odd.yaml"),
        ("elsewhere", "odd.yaml", "../in/odd.yaml", "odd.yaml"),
        ("elsewhere", "odd.yaml", "here.yaml", "here.yaml"),
    ],
)
def test_a_manifest_is_called_by_a_short_path(
    start: str,
    manifest: str,
    override: str | None,
    called: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for folder, name in (("in", "odd.yaml"), (".", "odd.yaml"), ("elsewhere", "here.yaml")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(HPA.replace("maxReplicas: 8", "maxReplicas: many"))
    file = write(tmp_path / "in", f"manifest: {manifest}")
    monkeypatch.chdir(tmp_path / start)
    scenario = load_scenario(file, [f"autoscaler.manifest={override}"] if override else [])
    with pytest.raises(ScenarioError) as caught:
        built(scenario)
    assert str(caught.value).startswith(
        f"{called}:5 (HorizontalPodAutoscaler vllm): spec.maxReplicas: must be"
    )


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"fleet.startup": {"empirical_s": [-1]}},
            "fleet.startup.empirical_s.0: found -1; must be at least 0",
        ),
        (
            {"fleet.startup": {"empirical_s": ["a"]}},
            "fleet.startup.empirical_s.0: found 'a'; must be a number",
        ),
        ({"fleet.startup": {"empirical_s": []}}, "fleet.startup.empirical_s: must have at least 1 item"),
        (
            {"fleet.startup": {"uniform": {"min_s": 1, "max_s": 2}, "in_order": True}},
            "fleet.startup.in_order: is possible only with empirical_s",
        ),
        (
            {"autoscaler.metrics": {"buckets": {"ttft": ["x"]}}},
            "autoscaler.metrics.buckets.ttft.0: found 'x'; must be a number",
        ),
        (
            {"autoscaler.metrics": {"buckets": {"ttft": []}}},
            "autoscaler.metrics.buckets.ttft: must have at least 1 item",
        ),
        (
            {
                "autoscaler.policy": {
                    **OWN_HPA,
                    "behavior": {"scale_up": {"rules": [{"type": "Pods", "value": 1}]}},
                }
            },
            "autoscaler.policy.behavior.scale_up.rules.0.period_s: missing, and has no default",
        ),
        (
            {"autoscaler.policy": {**OWN_HPA, "behavior": {"scale_up": {"rules": []}}}},
            "autoscaler.policy.behavior.scale_up.rules: must have at least 1 item; leave it out for the defaults",
        ),
        (
            {"autoscaler.policy.count": 100_001},
            "autoscaler.policy.count: found 100001; must be at most 100000",
        ),
        (
            {"autoscaler.policy": {"kind": "schedule", "default": 1, "start_of_run": "9999-12-31T23:59:59"}},
            "autoscaler.policy.start_of_run: found '9999-12-31T23:59:59'; must be in the years 1900 to 2999",
        ),
        (
            {"autoscaler.policy": {**OWN_HPA, "metric_map": {"q": "waiting"}}},
            "autoscaler.policy.metric_map: is possible only with a manifest",
        ),
    ],
)
def test_one_mistake_is_one_line(changes: dict[str, Any], problem: str, tmp_path: Path) -> None:
    scenario = load_scenario(write(tmp_path, SECTIONS["fixed"]))
    with pytest.raises(ScenarioError) as caught:
        scenario.with_(**changes)
    assert caught.value.problems == (problem,)


def test_a_section_left_empty_is_told(tmp_path: Path) -> None:
    (note,) = notes(load_scenario(write(tmp_path, "")))
    assert note == "autoscaler: is empty, so nobody scales the fleet; it needs a policy or a manifest"


def test_a_size_held_by_a_stabilisation_window_is_told_in_table_and_page(tmp_path: Path) -> None:
    policy = "policy: {kind: hpa, max_replicas: 4, metrics: [{metric: waiting, target: 5}]}"
    result = run(load_scenario(write(tmp_path, policy)))
    first = result.decisions.iloc[0]
    assert (first["desired"], first["stabilised"], first["target"]) == (0, 2, 2)
    assert first["events"] == (
        "the metrics ask for 0; the stabilisation window of scale-down (300 s) makes it 2",
    )
    held = int((result.decisions["stabilised"] > result.decisions["desired"]).sum())
    assert (
        f"at {held} a stabilisation window kept more workers than the metrics asked for"
        in decisions_table(result)
    )
