"""Pictures of a run, on the caller's axes or on new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from io import BytesIO
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dynamo_sim.records.records import FLEET, FleetRecords
from dynamo_sim.report.decision_metrics import Series, metric_groups
from dynamo_sim.report.plots.breakdown import draw_breakdown, draw_waterfall, request_of
from dynamo_sim.report.plots.decisions import MAX_PANELS, draw_decisions
from dynamo_sim.report.plots.gantt import draw_gantt
from dynamo_sim.report.plots.latency import draw_distributions, draw_over_time
from dynamo_sim.report.plots.routing import draw_routing
from dynamo_sim.report.plots.timeline import draw_timeline, has_memory
from dynamo_sim.text import shown

if TYPE_CHECKING:
    from dynamo_sim.report.tables import RunTables

LATENCY_SIZE = (9.0, 5.0)
WATERFALL_SIZE = (9.0, 3.8)
TIMELINE_SIZE = (10.0, 9.5)
ROUTING_SIZE = (9.0, 5.5)
TIMELINE_PANELS = 4
PANEL_HEIGHT = TIMELINE_SIZE[1] / TIMELINE_PANELS


class Plots:
    """The pictures of one run: ``result.plot``.

    Each method draws on the axes it is given and returns them. Without axes it opens a figure of pyplot,
    which a notebook shows; `figure` and `png` draw the same without pyplot. What is no axes, like a whole figure or
    an array of axes, is a TypeError, and axes that are not straight (polar ones) are a ValueError.
    """

    def __init__(self, result: RunTables) -> None:
        self._result = result

    def latency(self, ax: Axes | None = None) -> Axes:
        """Cumulative distributions of TTFT, TPOT (mean gap between tokens) and E2E latency, with bounds.

        Axes that show another run already get this one in other colours, each with its name.
        """
        ax = _one_axes(ax, LATENCY_SIZE)
        return draw_distributions(ax, self._result.columns, self._result.sla, self._name)

    def latency_over_time(self, ax: Axes | None = None, metric: str = "ttft") -> Axes:
        """A latency by time of arrival: p50, p90 and p99 of time bins.

        Args:
            ax: where to draw.
            metric: ``queue``, ``ttft``, ``ttst``, ``tpot`` or ``e2e``.

        Raises:
            ValueError: there is no such metric.
        """
        ax = _one_axes(ax, LATENCY_SIZE)
        return draw_over_time(ax, self._result.columns, metric, self._result.sla, self._name)

    def breakdown(self, ax: Axes | None = None) -> Axes:
        """Mean time to the first token and mean latency by phase, of all requests and of the slowest tenth."""
        return draw_breakdown(_one_axes(ax, LATENCY_SIZE), self._result)

    def waterfall(self, request: int, ax: Axes | None = None) -> Axes:
        """The phases of one request, one below the other, from its arrival on.

        Args:
            request: its ``index`` in ``result.requests``.
            ax: where to draw.

        Raises:
            ValueError: no request has arrived with it.
        """
        found = request_of(self._result.records.requests, request)
        return draw_waterfall(_one_axes(ax, WATERFALL_SIZE), found)

    def timeline(self, axes: Sequence[Axes] | np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Request rate, workers by state, queue length and KV cache in use, over time.

        Where somebody decided about the fleet the target is drawn too, and below the workers is what the policy looked
        at, with its thresholds.

        Args:
            axes: `timeline_panels` axes, top to bottom.

        Returns:
            The axes, as an array.

        Raises:
            ValueError: there are not as many axes as panels.
        """
        size, count = self._timeline_size(), self.timeline_panels
        panels = _pyplot_axes(size, count) if axes is None else np.ravel(np.asarray(axes))
        if len(panels) != count:
            raise ValueError(f"the timeline needs {count} axes, got {len(panels)}")
        for panel in panels:
            _check_axes(panel)
        draw_timeline(list(panels), self._result, self._metrics)
        return panels

    @property
    def timeline_panels(self) -> int:
        """Axes of the timeline: three, one if passes were recorded, up to three for metrics of a policy.

        A second fleet has one for its workers, one for its memory if passes were recorded, and one for what is on its
        way between the fleets.
        """
        fleets = max(len(self._result.records.fleets), 1)
        return 1 + fleets + fleets * (1 + has_memory(self._result)) + len(self._metrics)

    @property
    def _name(self) -> str:
        return str(getattr(self._result.scenario, "name", None) or "run")

    @cached_property
    def _metrics(self) -> list[tuple[str, list[Series]]]:
        """The groups of metrics that have a panel, each with the fleet that its policy scales."""
        return [
            (fleet, group)
            for fleet in self._decided_fleets
            for group in metric_groups(self._result, fleet)[:MAX_PANELS]
        ]

    @cached_property
    def _decided_fleets(self) -> list[str]:
        """Names of the fleets that somebody decided about."""
        fleets = self._result.records.fleets or [FleetRecords()]
        return [fleet.name for fleet in fleets if len(self._result.decisions_of(fleet.name))]

    def decisions(self, ax: Axes | None = None, fleet: str | None = None) -> Axes:
        """What the metrics asked for at each evaluation, what windows and cooldowns left of it, and the target.

        Args:
            ax: where to draw.
            fleet: ``prefill`` or ``decode``, where there are two; the first one that was decided about without it.

        Raises:
            ValueError: there is no such fleet.
        """
        names = [records.name for records in self._result.records.fleets] or [FLEET]
        if fleet is None:
            fleet = next(iter(self._decided_fleets), names[0])
        elif fleet not in names:
            raise ValueError(
                f"no fleet {fleet!r}; there {'is' if len(names) == 1 else 'are'} {' and '.join(names)}"
            )
        ax = _one_axes(ax, LATENCY_SIZE)
        return draw_decisions(ax, self._result, fleet)

    def gantt(self, ax: Axes | None = None, window_ms: tuple[float, float] | None = None) -> Axes:
        """The passes of each worker, coloured by what they do.

        Args:
            ax: where to draw.
            window_ms: from when to when, in ms; the whole run without it. Many passes are shown as shares of
                time, few as single bars: a narrow window shows every pass.

        Raises:
            TypeError: the window is no pair of numbers.
            ValueError: it is empty.
        """
        if window_ms is not None:
            _check_window(window_ms)
        ax = _one_axes(ax, self._gantt_size())
        return draw_gantt(ax, self._result, window_ms)

    def routing(self, axes: Sequence[Axes] | np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """Hit rate of the router, and requests in flight by worker, over time; needs ``report: {routing: true}``.

        Args:
            axes: two axes, top and bottom.

        Returns:
            The axes, as an array.

        Raises:
            ValueError: there are not two.
        """
        panels = _pyplot_axes(ROUTING_SIZE, 2) if axes is None else np.ravel(np.asarray(axes))
        if len(panels) != 2:
            raise ValueError(f"routing needs 2 axes, got {len(panels)}")
        for panel in panels:
            _check_axes(panel)
        draw_routing(list(panels), self._result)
        return panels

    def figure(self, name: str) -> Figure:
        """A picture as a figure of its own, unknown to pyplot.

        Args:
            name: one of `names`.

        Raises:
            ValueError: there is no such picture.
        """
        decided = max(len(self._decided_fleets), 1)
        pictures: dict[str, tuple[tuple[float, float], int, Callable[[list[Axes]], object]]] = {
            "latency": (LATENCY_SIZE, 1, lambda axes: self.latency(axes[0])),
            "ttft_over_time": (LATENCY_SIZE, 1, lambda axes: self.latency_over_time(axes[0])),
            "timeline": (self._timeline_size(), self.timeline_panels, self.timeline),
            "decisions": (
                (LATENCY_SIZE[0], LATENCY_SIZE[1] * decided),
                decided,
                lambda axes: (
                    [self.decisions(ax, fleet) for ax, fleet in zip(axes, self._decided_fleets, strict=False)]
                    or self.decisions(axes[0])
                ),
            ),
            "gantt": (self._gantt_size(), 1, lambda axes: self.gantt(axes[0])),
            "breakdown": (LATENCY_SIZE, 1, lambda axes: self.breakdown(axes[0])),
            "routing": (ROUTING_SIZE, 2, self.routing),
        }
        if name not in pictures:
            raise ValueError(f"no picture {name!r}; there are {', '.join(pictures)}")
        size, rows, draw = pictures[name]
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        draw(list(figure.subplots(rows, 1, squeeze=False, sharex=True)[:, 0]))
        return figure

    def png(self, name: str, dpi: int = 150) -> bytes:
        """A picture as a PNG file; the same bytes every time."""
        buffer = BytesIO()
        self.figure(name).savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
        return buffer.getvalue()

    @property
    def names(self) -> tuple[str, ...]:
        """The pictures that belong to this run.

        A breakdown if there are two fleets, decisions if there are any, routing and a Gantt chart if decisions of the
        router and passes were recorded.
        """
        routed = ("routing",) if self._result.records.routing else ()
        handed_over = ("breakdown",) if self._result.records.is_disaggregated else ()
        decided = ("decisions",) if len(self._result.decisions) else ()
        return (
            "latency",
            "ttft_over_time",
            *handed_over,
            "timeline",
            *decided,
            *routed,
            *(("gantt",) if self._result.has_passes else ()),
        )

    def _timeline_size(self) -> tuple[float, float]:
        return TIMELINE_SIZE[0], PANEL_HEIGHT * self.timeline_panels

    def _gantt_size(self) -> tuple[float, float]:
        workers = sum(
            len({worker_id for change in fleet.changes for worker_id in change.worker_ids})
            for fleet in self._result.records.fleets
        )
        return 10.0, min(max(1.8 + 0.3 * workers, 3.0), 12.0)


def _one_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes of the caller, or new ones."""
    if ax is None:
        new: Axes = _pyplot_axes(size)[0]
        return new
    _check_axes(ax)
    return ax


def _check_axes(ax: Any) -> None:
    if not isinstance(ax, Axes):
        raise TypeError(
            f"found {type(ax).__name__}; must be the Axes of one panel, as pyplot.subplots() gives"
        )
    if ax.name != "rectilinear":
        raise ValueError(f"found {ax.name} axes; must be straight ones, as pyplot.subplots() gives")


def _check_window(window_ms: Any) -> None:
    try:
        start_ms, end_ms = window_ms
        if isinstance(start_ms, Real) and isinstance(end_ms, Real):
            return
    except (TypeError, ValueError):
        pass
    raise TypeError(f"window_ms: found {shown(window_ms)}; must be two times in ms, like (10_000, 12_000)")


def _pyplot_axes(size: tuple[float, float], rows: int = 1) -> np.ndarray[Any, Any]:
    """Axes one above the other in a figure that pyplot manages."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots(rows, 1, figsize=size, layout="constrained", squeeze=False, sharex=True)
    return axes[:, 0]
