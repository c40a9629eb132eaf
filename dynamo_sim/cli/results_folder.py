"""Where a run may leave its results: refused before it has cost any time."""

from __future__ import annotations

import os
from pathlib import Path

from dynamo_sim.errors import ScenarioError
from dynamo_sim.files.drafts import probe, real_path


def usable_folder(given: Path | None, name: str) -> Path:
    """The folder to write results to; what else it holds stays.

    Args:
        given: the folder of ``--out``; None for the one named after the scenario.
        name: the scenario's name.

    Raises:
        ScenarioError: it cannot be written, or a file in it would be replaced that is not of an earlier result.
    """
    from dynamo_sim.report.saving import OUR_FILES, is_result

    folder = Path("results") / name if given is None else given
    shown = f"--out {folder}" if given is not None else str(folder)
    other = "choose another --out" if given is not None else "choose a folder with --out"
    if ".." in folder.parts:  # it may lead through folders that are not there
        folder = real_path(folder)
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    what = "it" if existing == folder.absolute() else str(existing)
    if not existing.is_dir():
        raise ScenarioError(f"{shown}: cannot be written: {what} is not a folder; {other}")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ScenarioError(f"{shown}: cannot be written: {what} is read-only for you; {other}")
    try:
        probe(existing)
    except OSError as error:
        raise ScenarioError(f"{shown}: cannot be written: {error.strerror or error}; {other}") from None
    if not folder.is_dir():
        return folder
    for file in OUR_FILES:
        if (folder / file).is_dir():
            raise ScenarioError(f"{shown}: {folder / file} is a folder; {other}")
    if is_result(folder):
        return folder
    names = {path.name for path in folder.iterdir()}
    for file in OUR_FILES:
        if file in names:
            raise ScenarioError(
                f"{shown}: {folder / file} would be replaced, and is not of an earlier result; {other}"
            )
    return folder
