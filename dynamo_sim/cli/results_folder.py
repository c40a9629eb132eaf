"""Where a run may leave its results: refused before it has cost any time."""

from __future__ import annotations

import os
from pathlib import Path

from dynamo_sim.errors import ScenarioError
from dynamo_sim.files.output import real_path


def usable_folder(folder: Path) -> Path:
    """The folder to write results to; what else it holds stays.

    Raises:
        ScenarioError: it cannot be written, or a file in it would be replaced that is not of an earlier result.
    """
    from dynamo_sim.report.saving import OUR_FILES, is_result

    if ".." in folder.parts:  # it may lead through folders that are not there
        folder = real_path(folder)
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    if not existing.is_dir():
        raise ScenarioError(f"{folder}: cannot be written, {existing} is a file; choose another --out")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ScenarioError(
            f"{folder}: cannot be written, {existing} is read-only for you; choose another --out"
        )
    if not folder.is_dir():
        return folder
    for name in OUR_FILES:
        if (folder / name).is_dir():
            raise ScenarioError(f"{folder}: {folder / name} is a folder; choose another --out")
    if is_result(folder):
        return folder
    names = {path.name for path in folder.iterdir()}
    for name in OUR_FILES:
        if name in names:
            raise ScenarioError(
                f"{folder}: {folder / name} would be replaced, and is not of an earlier result; "
                "choose another --out"
            )
    return folder
