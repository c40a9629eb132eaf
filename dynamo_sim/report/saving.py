"""Writes a result to a directory: all of it, or nothing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamo_sim.files.drafts import Drafts, real_path
from dynamo_sim.files.output import in_the_way
from dynamo_sim.report.conditions import conditions
from dynamo_sim.report.scenario_text import scenario_yaml

if TYPE_CHECKING:
    import pandas as pd

    from dynamo_sim.report.tables import RunTables

PACKAGE = "dynamo-sim"
REQUEST_FORMATS = ("parquet", "csv")
PICTURES = ("latency", "ttft_over_time", "breakdown", "timeline", "decisions", "routing", "gantt")
OUR_FILES = (
    "summary.json",
    "meta.json",
    "scenario.yaml",
    "fleet.csv",
    "decisions.csv",
    "breakdown.csv",
    *(f"{table}.{name}" for table in ("requests", "passes", "routing") for name in REQUEST_FORMATS),
    *(f"{name}.png" for name in PICTURES),
)
"""All names a result may have in its directory."""


def save_result(
    result: RunTables,
    directory: str | os.PathLike[str],
    plots: bool | None = None,
    requests_format: str | None = None,
    drafts: Drafts | None = None,
) -> list[Path]:
    """Write summary, requests, passes and routing (if recorded), fleet, decisions (if any), scenario, pictures.

    Where there are two fleets, the phases of requests (`breakdown_frame`) too.

    Everything is written beside ``directory`` first and then moved. A directory that exists is kept, with
    whatever else is in it; files of an earlier result are replaced, or removed where this one has none. Two
    runs of one scenario write the same bytes, so the speed of the simulator is left out of the summary.

    Args:
        result: what to write.
        directory: where to; made with its parents.
        plots: whether to draw pictures; None leaves it to the scenario, as does the next one.
        requests_format: ``parquet`` or ``csv``, for requests and passes.
        drafts: outputs that are to be put in place together with this one; None for this one alone.

    Returns:
        The files, by name.

    Raises:
        ValueError: there is no such format.
        OSError: the directory cannot be written, or is a file.
    """
    section = getattr(result.scenario, "report", None)
    if plots is None:
        plots = getattr(section, "plots", True)
    if requests_format is None:
        requests_format = getattr(section, "requests_format", REQUEST_FORMATS[0])
    if requests_format not in REQUEST_FORMATS:
        raise ValueError(
            f"requests_format must be one of {', '.join(REQUEST_FORMATS)}, got {requests_format!r}"
        )
    target = real_path(directory)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{directory} is a file, not a directory to save a result in")
    if (obstacle := in_the_way(target)) is not None:
        raise NotADirectoryError(
            f"{directory} cannot be a directory to save a result in: {obstacle} is a file"
        )
    if drafts is None:
        with Drafts() as own:
            return save_result(result, directory, plots, requests_format, own)
    draft = drafts.folder(target, OUR_FILES)
    _write(result, draft, target, plots, requests_format)
    return [target / name for name in sorted(path.name for path in draft.iterdir())]


def _write(result: RunTables, directory: Path, target: Path, plots: bool, requests_format: str) -> None:
    """Write all files into ``directory``, which will be ``target``."""
    _write_json(directory / "summary.json", result.summary.without_wall_time())
    _write_json(directory / "meta.json", meta(result))
    if result.scenario is not None:
        (directory / "scenario.yaml").write_text(scenario_yaml(result.scenario, target), encoding="utf-8")
    _write_frame(directory / f"requests.{requests_format}", result.requests)
    if result.has_passes:
        _write_frame(directory / f"passes.{requests_format}", result.passes)
    if len(result.routing):
        routing = result.routing if requests_format != "csv" else _without_tuples(result.routing)
        _write_frame(directory / f"routing.{requests_format}", routing)
    fleet = result.fleet.assign(worker_ids=[" ".join(map(str, ids)) for ids in result.fleet["worker_ids"]])
    _write_frame(directory / "fleet.csv", fleet)
    if len(result.decisions):
        _write_frame(directory / "decisions.csv", _flat(result.decisions))
    if result.records.is_disaggregated:
        _write_frame(directory / "breakdown.csv", result.breakdown)
    if plots:
        from dynamo_sim.report.plots import Plots

        pictures = Plots(result)
        for name in pictures.names:
            (directory / f"{name}.png").write_bytes(pictures.png(name))


def is_result(directory: Path) -> bool:
    """Whether a directory holds the result of an earlier run."""
    try:
        about = json.loads((directory / "meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and about.get("package") == PACKAGE


def package_version() -> str:
    """The version of this package, or ``unknown`` where it runs without being installed."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and few runs need it

    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "unknown"


def meta(result: RunTables) -> dict[str, Any]:
    """What made the result (package, version, name and seed), under which `conditions`, and warnings."""
    return {
        "conditions": conditions(result.scenario),
        "name": getattr(result.scenario, "name", None),
        "package": PACKAGE,
        "seed": getattr(result.scenario, "seed", None),
        "version": package_version(),
        "warnings": result.warnings,
    }


def _flat(decisions: pd.DataFrame) -> pd.DataFrame:
    """Ids of workers separated by blanks, events by semicolons."""
    flat = decisions.assign(events=["; ".join(events) for events in decisions["events"]])
    for name in ("added", "cancelled", "marked"):
        flat[name] = [" ".join(map(str, ids)) for ids in decisions[name]]
    return flat


def _without_tuples(routing: pd.DataFrame) -> pd.DataFrame:
    """What was weighed, separated by blanks."""
    names = [str(name) for name in routing if routing[name].dtype == object]
    return routing.assign(
        **{name: [" ".join(map(str, values)) for values in routing[name]] for name in names}
    )


def _write_frame(path: Path, frame: pd.DataFrame) -> None:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False, lineterminator="\n")
    else:
        with path.open("wb") as file:  # pyarrow takes no path whose bytes are not UTF-8
            frame.to_parquet(file, index=False)


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
    path.write_text(json.dumps(finite, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
