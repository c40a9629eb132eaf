"""Pictures: on any axes, of any run, with nothing hidden."""

from __future__ import annotations

import sys
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamo_sim.records.records import RunRecords
from dynamo_sim.report.plots.style import literal
from dynamo_sim.report.result import RunResult
from dynamo_sim.text import duration_text
from tests.report.run_records import ToyScenario, large_run, records_of, rejected, served, sla, toy_run

NAMES = ("latency", "ttft_over_time", "timeline", "gantt")


@pytest.fixture(scope="module")
def toy() -> RunResult:
    return RunResult(toy_run(), ToyScenario(sla(60.0, 20.0, 2000.0)))


def axes(count: int = 1) -> list[Axes]:
    figure = Figure(figsize=(9, 5 * count), layout="constrained")
    return list(figure.subplots(count, 1, squeeze=False)[:, 0])


def legend(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[union-attr]


def words_bottom(ax: Axes) -> float:
    """Where the words of the title end; the empty lines below them are room for the legend."""
    box = ax._left_title.get_window_extent()  # type: ignore[attr-defined]
    lines = ax.get_title("left").count("\n") + 1
    return float(box.y1 - box.height / lines)


def no_passes() -> RunRecords:
    records = toy_run(20)
    records.fleets[0].passes = []
    return records


RUNS: dict[str, Any] = {
    "empty": RunRecords,
    "one request": lambda: toy_run(1, scaling=False),
    "one token": lambda: records_of([served(0, 0.0, [0.0])], []),
    "all rejected": lambda: RunRecords(requests=[rejected(0, 0.0), rejected(1, 7.0)]),
    "no passes": no_passes,
    "instant": lambda: records_of([served(0, 0.0, [0.0, 0.0]), served(1, 0.0, [5.0, 5.0])], []),
    "many workers": lambda: toy_run(100, workers=80),
    "large": lambda: large_run(20_000, workers=8, passes=2_000),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("error")
def test_every_run_can_be_drawn(run: str, name: str) -> None:
    figure = RunResult(RUNS[run](), ToyScenario(sla(60.0, 0.0, 2000.0))).plot.figure(name)
    figure.canvas.draw()


@pytest.mark.parametrize("name", NAMES)
def test_legends_stand_above_the_data(toy: RunResult, name: str) -> None:
    figure = toy.plot.figure(name)
    figure.canvas.draw()
    for ax in figure.axes:
        box = ax.get_legend().get_window_extent()  # type: ignore[union-attr]
        assert box.y0 >= ax.get_window_extent().y1 - 1
        assert words_bottom(ax) >= box.y1 - 3
        assert ax.get_title("left") and figure.bbox.x1 >= box.x1


@pytest.mark.parametrize("name", NAMES)
def test_another_title_of_the_caller_does_not_pull_ours_into_the_legend(toy: RunResult, name: str) -> None:
    figure = toy.plot.figure(name)
    for ax in figure.axes:
        ax.set_title("mine", loc="right")
    figure.canvas.draw()
    for ax in figure.axes:
        assert words_bottom(ax) >= ax.get_legend().get_window_extent().y1 - 3  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_the_same_every_time_and_leaves_pyplot_alone(name: str) -> None:
    pictures = {RunResult(toy_run(40)).plot.png(name, dpi=50) for _ in range(2)}
    assert len(pictures) == 1
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()


def test_latency_draws_on_the_axes_of_the_caller(toy: RunResult) -> None:
    ax = axes()[0]
    assert toy.plot.latency(ax) is ax
    labels = legend(ax)
    assert [label.split(":")[0].split(" bound")[0] for label in labels] == ["TTFT", "TPOT", "E2E"] * 2
    assert ax.get_xscale() == "log" and "ms" in ax.get_xlabel()


def test_the_curve_is_the_distribution() -> None:
    times = [[10.0], [40.0], [20.0], [20.0]]
    ax = axes()[0]
    RunResult(records_of([served(i, 0.0, t) for i, t in enumerate(times)], times)).plot.latency(ax)
    x, y = ax.get_lines()[0].get_data()
    assert list(x) == [10.0, 10.0, 20.0, 20.0, 40.0]
    assert list(y) == [0.0, 25.0, 50.0, 75.0, 100.0]


def test_a_bound_far_from_the_data_is_named_but_not_drawn(toy: RunResult) -> None:
    ax = axes()[0]
    RunResult(toy.records, ToyScenario(sla(ttft_ms=60_000.0))).plot.latency_over_time(ax)
    assert legend(ax)[-1] == "TTFT bound 60 s (out of view)"
    assert ax.get_ylim()[1] < 1000.0


def test_the_bound_on_itl_is_said_to_be_about_the_mean_gap_of_a_request(toy: RunResult) -> None:
    over_time, distributions = axes(2)
    toy.plot.latency_over_time(over_time, metric="tpot")
    toy.plot.latency(distributions)
    for ax in (over_time, distributions):
        assert any(text.startswith("TPOT bound (sla.itl_ms) 20 ms") for text in legend(ax))


@pytest.mark.parametrize("metric", ["queue", "ttft", "ttst", "tpot", "e2e"])
def test_every_latency_can_be_shown_over_time(toy: RunResult, metric: str) -> None:
    ax = axes()[0]
    assert toy.plot.latency_over_time(ax, metric=metric) is ax
    assert {"p50", "p90", "p99"} <= set(legend(ax))


def test_an_unknown_metric_is_refused(toy: RunResult) -> None:
    with pytest.raises(ValueError, match="queue, ttft, ttst, tpot, e2e"):
        toy.plot.latency_over_time(axes()[0], metric="speed")


def test_the_timeline_fills_four_axes(toy: RunResult) -> None:
    panels = axes(4)
    assert list(toy.plot.timeline(panels)) == panels
    assert [ax.get_ylabel() for ax in panels] == ["requests/s", "workers", "requests", "% of the pool"]
    assert legend(panels[1]) == ["active", "starting", "draining"]
    with pytest.raises(ValueError, match="needs 4 axes, got 3"):
        toy.plot.timeline(panels[:3])


def test_arrival_rates_add_up_to_the_requests(toy: RunResult) -> None:
    ax = axes(4)[0]
    toy.plot.timeline([ax, *axes(4)[1:]])
    rates = ax.patches[0].get_data()  # type: ignore[attr-defined]
    assert (rates.values * np.diff(rates.edges)).sum() == pytest.approx(400)


def test_a_narrow_window_shows_single_passes(toy: RunResult) -> None:
    ax = axes()[0]
    assert toy.plot.gantt(ax, window_ms=(5000.0, 5200.0)) is ax
    bars = sum(len(collection.get_paths()) for collection in ax.collections)
    passes = toy.passes
    inside = passes[(passes["end_ms"] > 5000.0) & (passes["start_ms"] < 5200.0)]
    assert bars >= len(inside) > 0
    assert ax.get_xlim() == (5.0, 5.2)
    assert "share" not in ax.get_xlabel()


def test_many_passes_are_shown_as_shares(toy: RunResult) -> None:
    ax = axes()[0]
    toy.plot.gantt(ax)
    assert "share of each" in ax.get_xlabel()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2", "3", "4"]


def test_an_empty_window_is_refused(toy: RunResult) -> None:
    with pytest.raises(ValueError, match="must end after it starts"):
        toy.plot.gantt(axes()[0], window_ms=(5.0, 5.0))


def test_without_axes_pyplot_gets_a_figure(toy: RunResult) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for drawn in (
        toy.plot.latency(),
        toy.plot.latency_over_time(),
        toy.plot.timeline()[0],
        toy.plot.gantt(),
    ):
        assert drawn.figure.number in pyplot.get_fignums()
    pyplot.close("all")


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [
        (0.0, "0 ms"),
        (0.5123, "0.512 ms"),
        (48.26, "48.3 ms"),
        (999.0, "999 ms"),
        (999.7, "1 s"),
        (1250.0, "1.25 s"),
        (89_990.0, "90 s"),
        (120_000.0, "2 min"),
        (5_400_000.0, "1.5 h"),
        (4e9, "1,111 h"),
    ],
)
def test_durations_read_well(value_ms: float, text: str) -> None:
    assert duration_text(value_ms) == text


@pytest.mark.parametrize("method", ["latency", "latency_over_time", "gantt", "decisions"])
@pytest.mark.parametrize(
    "wrong", [3, np.array(axes()), Figure(), "axes"], ids=lambda wrong: type(wrong).__name__
)
def test_what_is_no_axes_is_a_type_error(toy: RunResult, method: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"found {type(wrong).__name__}; must be the Axes of one panel"):
        getattr(toy.plot, method)(wrong)


def test_what_the_timeline_cannot_draw_on_is_refused(toy: RunResult) -> None:
    with pytest.raises(TypeError, match="found int64; must be the Axes"):
        toy.plot.timeline([1, 2, 3, 4])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="found polar axes; must be straight ones"):
        toy.plot.latency(Figure().add_subplot(projection="polar"))


@pytest.mark.parametrize("window", [3, "ab", (1,), (None, 2)])
def test_a_window_is_two_times(toy: RunResult, window: Any) -> None:
    with pytest.raises(TypeError, match=r"window_ms: found .*; must be two times in ms"):
        toy.plot.gantt(window_ms=window)


def test_a_window_may_be_an_array(toy: RunResult) -> None:
    window: Any = np.array([1000.0, 2000.0])
    assert (
        toy.plot.gantt(axes()[0], window_ms=window).get_xlim()
        == toy.plot.gantt(axes()[0], (1000, 2000)).get_xlim()
    )


def test_dollar_signs_in_names_are_no_formulas() -> None:
    figure = Figure()
    figure.suptitle(literal(r"q$\foo$ a$b$c_{ $"))
    figure.savefig(BytesIO(), format="png")


def test_an_unknown_picture_is_refused(toy: RunResult) -> None:
    with pytest.raises(ValueError, match="no picture 'zz'; there are latency, ttft_over_time, timeline"):
        toy.plot.png("zz")


def test_a_timeline_without_passes_has_no_empty_panel() -> None:
    titles = [ax.get_title("left") for ax in RunResult(no_passes()).plot.figure("timeline").axes]
    assert [title.split(":")[0].strip() for title in titles] == [
        "Request rate",
        "Workers by state",
        "Queue",
    ]


@pytest.mark.parametrize("metric", ["latency", "latency_over_time"])
def test_two_runs_on_one_axes_differ_in_colour_and_name(toy: RunResult, metric: str) -> None:
    ax, other = axes()[0], RunResult(toy_run(60), ToyScenario(sla(60.0, 20.0, 2000.0)))
    getattr(toy.plot, metric)(ax)
    getattr(other.plot, metric)(ax)
    labels = legend(ax)
    assert len(set(labels)) == len(labels)
    first = [label for label in labels if label.startswith("toy ") and not label.startswith("toy (2)")]
    second = [label for label in labels if label.startswith("toy (2) ")]
    assert first and second and len(first) + len(second) == len(labels)


def test_curves_of_two_runs_have_different_colours(toy: RunResult) -> None:
    ax = axes()[0]
    toy.plot.latency(ax)
    toy.plot.latency(ax)
    curves = [line for line in ax.get_lines() if str(line.get_label()).startswith(("toy", "T", "E"))]
    colours = {line.get_color() for line in curves if len(line.get_xdata()) > 2}  # type: ignore[arg-type]
    assert len(colours) == 6


def test_titles_are_not_cut_on_axes_of_the_caller(toy: RunResult) -> None:
    figure = Figure(figsize=(6, 3))
    ax = figure.subplots()
    toy.plot.latency(ax)
    figure.draw_without_rendering()
    title = ax._left_title.get_window_extent()  # type: ignore[attr-defined]
    assert title.y1 <= figure.bbox.y1 and title.x1 <= figure.bbox.x1
