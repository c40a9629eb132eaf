"""Writing a file that a person named: all of it, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from dynamo_sim import signals
from dynamo_sim.errors import OutputError, ScenarioError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, also through folders that are not there and links that lead nowhere."""
    return Path(os.path.realpath(path))


def in_the_way(path: str | os.PathLike[str]) -> Path | None:
    """What stands where a folder of ``path`` would be, and is none; None when all can be made or are there."""
    for folder in Path(path).absolute().parents:
        if os.path.lexists(folder):
            return None if folder.is_dir() else folder
    return None


def draft_of(target: Path) -> Path:
    """A new name beside ``target``; not longer than the names a folder may hold."""
    return target.with_name(f".{target.name[:40]}.{uuid4().hex}.tmp")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write: a draft that replaces ``path``, whose folders are made, once it is complete.

    Pipes and devices are written directly. A command that was told to end puts nothing in place.

    Raises:
        OSError: the file cannot be written.
    """
    if os.path.exists(path) and not os.path.isfile(
        path
    ):  # before links are followed: pipes have no real path
        yield Path(path)
        return
    target = real_path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(target)
    try:
        yield draft
        signals.check()
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def file_of_option(option: str, path: str | os.PathLike[str]) -> Iterator[Path]:
    """`whole_file` for an option of the command line.

    Raises:
        OutputError: the file cannot be written; the text names the option.
        BrokenPipeError: the reader of a pipe has gone.
    """
    try:
        with whole_file(path) as draft:
            yield draft
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{option} {path}: cannot be written: {error.strerror or error}") from None


def check_file_of_option(option: str, path: str | os.PathLike[str], *endings: str) -> None:
    """Refuse at once what can be seen to be no place for a file.

    Args:
        endings: what the name may end in, if that matters: an input given by mistake is not replaced then. Pipes and
            devices have names of their own.

    Raises:
        ScenarioError: it is a folder, a file stands in the way, or the name ends in something else.
    """
    if os.path.isdir(path):
        raise ScenarioError(f"{option} {path}: cannot be written: it is a folder")
    if (obstacle := in_the_way(real_path(path))) is not None:
        raise ScenarioError(f"{option} {path}: cannot be written: {obstacle} is not a folder")
    is_special = os.path.exists(path) and not os.path.isfile(path)
    if endings and not is_special and (found := Path(path).suffix.lower()) not in endings:
        raise ScenarioError(f"{option} {path}: found the ending {found!r}; must be {' or '.join(endings)}")


def check_picture_of_option(option: str, path: str | os.PathLike[str]) -> None:
    """`check_file_of_option`, and the ending has to be that of a kind of picture.

    Raises:
        ScenarioError: as above, or there is no such kind.
    """
    check_file_of_option(option, path)
    from matplotlib.backend_bases import FigureCanvasBase

    if (kind := _kind(path)) not in FigureCanvasBase.filetypes:
        raise ScenarioError(
            f"{option} {path}: found the ending {kind!r}; must be one like .png, .svg or .pdf"
        )


def save_figure(figure: Figure, option: str, path: str | os.PathLike[str], dpi: int) -> None:
    """Write a picture for an option of the command line that `check_picture_of_option` has let pass.

    Raises:
        OutputError: the file cannot be written.
    """
    with file_of_option(option, path) as draft:
        figure.savefig(draft, format=_kind(path), dpi=dpi)


def _kind(path: str | os.PathLike[str]) -> str:
    """The kind of a picture, as the ending says; png without one."""
    return Path(path).suffix.removeprefix(".").lower() or "png"
