"""Writing a file that a person named: all of it, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from dynamo_sim.errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, also through folders that are not there and links that lead nowhere."""
    return Path(os.path.realpath(path))


def draft_of(target: Path) -> Path:
    """A new name beside ``target``; not longer than the names a folder may hold."""
    return target.with_name(f".{target.name[:40]}.{uuid4().hex}.tmp")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write: a draft that replaces ``path``, whose folders are made, once it is complete.

    Pipes and devices are written directly.

    Raises:
        OSError: the file cannot be written.
    """
    target = real_path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(target)
    try:
        yield draft
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def file_of_option(option: str, path: str | os.PathLike[str]) -> Iterator[Path]:
    """`whole_file` for an option of the command line.

    Raises:
        ScenarioError: the file cannot be written; the text names the option.
    """
    try:
        with whole_file(path) as draft:
            yield draft
    except OSError as error:
        raise ScenarioError(f"{option} {path}: cannot be written: {error.strerror or error}") from None


def save_figure(figure: Figure, option: str, path: str | os.PathLike[str], dpi: int) -> None:
    """Write a picture for an option of the command line; the ending of ``path`` says of what kind, png without one.

    Raises:
        ScenarioError: the file cannot be written, or there is no such kind.
    """
    kind = Path(path).suffix.removeprefix(".").lower() or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise ScenarioError(
            f"{option} {path}: found the ending {kind!r}; must be one like .png, .svg or .pdf"
        )
    with file_of_option(option, path) as draft:
        figure.savefig(draft, format=kind, dpi=dpi)
