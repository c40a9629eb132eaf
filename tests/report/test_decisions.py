"""What an autoscaler decided: as a table, in files and on the page, and in pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dynamo_sim as ds
from dynamo_sim.autoscaling import Decision, TargetEffect
from dynamo_sim.autoscaling.decision import DecisionRecord
from dynamo_sim.report.decision_metrics import metric_groups
from dynamo_sim.report.html import decisions_table, page
from dynamo_sim.report.result import RunResult
from tests.report.run_records import ToyScenario, toy_run

FRONT = ["at_s", "loop", "policy", "current", "desired", "stabilised", "target", "reason"]
BACK = ["added", "cancelled", "marked", "hold", "events"]

SCENARIO = """
name: decided
workload: {kind: synthetic, input_tokens: 512, output_tokens: 64, request_count: 1200, arrival_interval_ms: 50}
fleet: {workers: 1, engine: {engine_type: vllm, num_gpu_blocks: 256, startup_time: 5}}
autoscaler: {max_workers: 6, metrics: {scrape_interval_s: 2}, policy: %s}
"""
POLICIES = {
    "hpa": (
        "{kind: hpa, max_replicas: 6, sync_period_s: 5, metrics: [{metric: in_flight, target: 8}]}",
        ["avg in_flight"],
        ["target 8"],
    ),
    "keda": (
        "{kind: keda, max_replicas: 6, triggers: [{kind: metric, metric: waiting, threshold: 4, name: line}]}",
        ["line"],
        ["target: 4 a worker × current workers"],
    ),
    "kpa": ("{kind: kpa, target: 10}", ["stable", "panic"], ["target: 7 a worker × current workers"]),
    "step_scaling": (
        "{kind: step_scaling, alarms: [{metric: in_flight, threshold: 9, direction: up, steps: [{adjustment: 1}]},"
        " {metric: in_flight, threshold: 2, direction: down, steps: [{adjustment: -1}]}]}",
        ["avg avg_over_time(in_flight)"],
        ["alarm up from 9", "alarm down to 2"],
    ),
    "target_tracking": (
        "{kind: target_tracking, metric: in_flight, target: 8, scale_out_periods: 1}",
        ["avg avg_over_time(in_flight)"],
        ["target 8"],
    ),
    "schedule": ("{kind: schedule, at_ms: [{t: 5000, target: 3}]}", None, None),
}


def evaluation(at_s: float, current: int, target: int, **more: Any) -> dict[str, Any]:
    ids = [more.pop(name, ()) for name in ("added", "cancelled", "marked")]
    effect = TargetEffect(added=ids[0], cancelled=ids[1], marked=ids[2])
    return DecisionRecord(at_s, "mine", "Mine", current, target, "because", effect=effect, **more).as_row()


def decided(*rows: dict[str, Any]) -> RunResult:
    records = toy_run(40)
    records.decisions = list(rows)
    return RunResult(records, ToyScenario())


def axes(count: int = 1) -> list[Axes]:
    figure = Figure(figsize=(9, 3 * count), layout="constrained")
    return list(figure.subplots(count, 1, squeeze=False)[:, 0])


def legend(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]


def run(tmp_path: Path, policy: str, own: Any = None) -> RunResult:
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO % policy, encoding="utf-8")
    return ds.run(ds.load_scenario(path), policy=own)


def test_without_decisions_the_table_has_its_columns_and_there_is_no_picture() -> None:
    result = decided()
    assert list(result.decisions.columns) == FRONT + BACK and not len(result.decisions)
    assert result.plot.timeline_panels == 4 and "decisions" not in result.plot.names
    assert "evaluations" not in page(result)


def test_types_are_the_same_whether_or_not_there_is_something() -> None:
    empty, full = decided().decisions, decided(evaluation(1.0, 1, 2, added=(3,))).decisions
    assert dict(empty.dtypes) == dict(full.dtypes)


def test_a_row_an_evaluation_and_missing_numbers_are_missing() -> None:
    rows = (
        evaluation(1.0, 1, 3, values={"x": None}, desired=4, added=(1, 2)),
        evaluation(2.0, 3, 3, values={"x": 2.5, "y": 1}),
    )
    frame = decided(*rows).decisions
    assert list(frame.columns) == [*FRONT, "value:x", "value:y", *BACK]
    assert frame["value:x"].isna().tolist() == [True, False] and frame["value:y"].dtype == float
    assert frame["desired"].tolist() == [4, pd.NA] and frame["added"].tolist() == [(1, 2), ()]


def test_values_that_are_no_numbers_are_kept_and_not_drawn() -> None:
    result = decided(evaluation(1.0, 1, 2, values={"mood": "good", "x": 1.0}))
    assert result.decisions["value:mood"].tolist() == ["good"]
    assert [[s.name for s in group] for group in metric_groups(result)] == [["x"]]


def test_saved_only_when_there_are_any(tmp_path: Path) -> None:
    rows = evaluation(1.0, 1, 3, added=(1, 2), events=("a", "b")), evaluation(2.0, 3, 2, marked=(2,))
    files = [path.name for path in decided(*rows).save(tmp_path / "r")]
    assert {"decisions.csv", "decisions.png"} <= set(files)
    saved = pd.read_csv(tmp_path / "r" / "decisions.csv", dtype=str, keep_default_na=False)
    assert saved["added"].tolist() == ["1 2", ""] and saved["events"].tolist() == ["a; b", ""]
    decided().save(tmp_path / "r")
    assert not (tmp_path / "r" / "decisions.csv").exists() and not (tmp_path / "r" / "decisions.png").exists()


@pytest.mark.filterwarnings("error::UserWarning")
def test_the_page_shows_changes_only_and_says_what_it_leaves_out() -> None:
    rows = [
        evaluation(float(t), 1, 1 + t % 2, values={"<x>": 0.5}, added=tuple(range(t % 2 * 3)))
        for t in range(1, 9)
    ]
    table = decisions_table(decided(*rows), most=3)
    assert "8 evaluations, 4 of them changed something; the first 3 are shown" in table
    assert table.count("<tr>") == 1 + 3 and "+0 to 2" in table and "&lt;x&gt;" in table
    assert "What was decided" in page(decided(*rows))


@pytest.mark.parametrize("kind", POLICIES)
@pytest.mark.filterwarnings("error::UserWarning")
def test_the_timeline_shows_what_each_policy_reads(kind: str, tmp_path: Path) -> None:
    policy, names, limits = POLICIES[kind]
    result = run(tmp_path, policy)
    panels = axes(result.plot.timeline_panels)
    result.plot.timeline(panels)
    assert {"target", "scaled out"} <= set(legend(panels[1]))
    if names is None:
        assert len(panels) == 4
        return
    assert len(panels) == 5 and panels[2].get_title("left").startswith(
        "Read by the policy: " + ", ".join(names)
    )
    shown = [label.removesuffix(" (out of view)") for label in legend(panels[2])]
    assert shown[: len(names)] == names and [s for s in shown if s in limits] == limits  # type: ignore[operator]
    whose = "in total" if kind in ("keda", "kpa") else "per worker"
    assert panels[2].get_ylabel().split("\n")[0] == f"requests {whose}"
    result.plot.figure("timeline").canvas.draw()


@pytest.mark.parametrize(
    ("source", "metric", "unit"),
    [
        ("Pods", "metric: in_flight", "requests per worker"),
        ("External", "metric: in_flight", "requests in total"),
        ("External", "metric: in_flight, reduce: max", "requests per worker (max)"),
        ("External", "metric: requests_finished", "requests/s in total"),
        ("External", "metric: ttft", "ms"),
    ],
)
def test_a_metric_of_an_hpa_says_whether_it_is_per_worker_or_in_total(
    source: str, metric: str, unit: str, tmp_path: Path
) -> None:
    entry = f"{{{metric}, target: 8, source: {source}, name: it}}"
    policy = f"{{kind: hpa, max_replicas: 6, sync_period_s: 5, metrics: [{entry}]}}"
    ((series,),) = metric_groups(run(tmp_path, policy))
    assert (series.name, series.unit) == ("it", unit)


def test_a_policy_of_ones_own_names_its_thresholds(tmp_path: Path) -> None:
    class Mine:
        reads = ("in_flight",)
        period_s = 5.0

        def decide(self, now_s: float, view: Any, fleet: Any) -> Decision:
            load = view.value("in_flight")
            return Decision(2, "two", values={"in_flight": load, "in_flight threshold": 5.0, "floor": 1.0})

    groups = metric_groups(run(tmp_path, POLICIES["hpa"][0], Mine()))
    assert [[series.name for series in group] for group in groups] == [["in_flight"]]
    assert [label for label, _ in groups[0][0].limits] == ["threshold 5"] and groups[0][0].unit == "requests"


def test_the_picture_of_decisions(tmp_path: Path) -> None:
    ax = axes()[0]
    rows = (
        evaluation(1.0, 1, 3, desired=90, stabilised=90, added=(1, 2)),
        evaluation(2.0, 3, 2, desired=1, stabilised=2),
    )
    assert decided(*rows).plot.decisions(ax) is ax
    labels = ["target", "stabilised", "desired", "scaled out", "scaled in", "off the scale, up to 90"]
    assert legend(ax) == labels and ax.get_ylim()[1] < 6.0 and ax.get_ylabel() == "workers"
    decided().plot.decisions(axes()[0])


@pytest.mark.filterwarnings("error")
def test_no_data_at_all_can_be_drawn() -> None:
    result = decided(*(evaluation(float(t), 1, 1, values={"x": None, "target": 3.0}) for t in range(1, 4)))
    for name in ("timeline", "decisions"):
        result.plot.figure(name).canvas.draw()
    assert result.plot.png("decisions", dpi=50) == result.plot.png("decisions", dpi=50)
