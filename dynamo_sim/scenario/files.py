"""Paths inside a scenario: relative to the folder of the scenario's file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BASE_DIR = "base_dir"
"""Key of the validation context that holds the folder relative paths start from."""

PATH_KEYS = ("path", "planner_profile_data", "manifest", "config", "router_policy_config")
"""Keys whose texts are paths; in an override they start from the current folder, as in any other argument."""


def existing_path(text: str, context: Any, folders: bool = False) -> str:
    """Make a path of a scenario absolute and check that something is there.

    Without a folder in the validation context (a scenario that was not loaded from a file) the path stays as
    it is, relative to wherever the run is started.

    Raises:
        ValueError: nothing there, or a folder where a file is needed.
    """
    if not text.strip() or not _is_path(text):
        raise ValueError("must be a path")
    base: Path | None = (context or {}).get(BASE_DIR)
    if base is None:
        return text
    try:
        path = Path(base, Path(text).expanduser())
        if not path.is_fifo():  # what /dev/stdin links to has no name of its own
            path = path.resolve()
        is_there, is_folder = path.exists(), path.is_dir()
    except (OSError, RuntimeError) as error:  # a name too long, a loop of links, the home of nobody
        raise ValueError(f"cannot be found: {getattr(error, 'strerror', None) or error}") from None
    if not is_there:
        raise ValueError(f"no such file{' or folder' if folders else ''}: {path}")
    if is_folder and not folders:
        raise ValueError(f"is a folder, not a file: {path}")
    return str(path)


def _is_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
