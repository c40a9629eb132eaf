"""Paths inside a scenario: relative to the folder of the scenario's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BASE_DIR = "base_dir"
"""Key of the validation context that holds the folder relative paths start from."""


def existing_path(text: str, context: Any, folders: bool = False) -> str:
    """Make a path of a scenario absolute and check that something is there.

    Without a folder in the validation context (a scenario that was not loaded from a file) the path stays as
    it is, relative to wherever the run is started.

    Raises:
        ValueError: nothing there, or a folder where a file is wanted.
    """
    if not text.strip() or "\0" in text:
        raise ValueError("must be a path")
    base: Path | None = (context or {}).get(BASE_DIR)
    if base is None:
        return text
    path = Path(base, Path(text).expanduser()).resolve()
    if not path.exists():
        raise ValueError(f"no such file{' or folder' if folders else ''}: {path}")
    if path.is_dir() and not folders:
        raise ValueError(f"is a folder, not a file: {path}")
    return str(path)
