"""Files that a person named in an option of the command line: refused early, written whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dynamo_sim.errors import OutputError, ScenarioError
from dynamo_sim.files.drafts import probe, real_path, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def in_the_way(path: str | os.PathLike[str]) -> Path | None:
    """What stands where a folder of ``path`` would be, and is none; None when all can be made or are there."""
    for folder in Path(path).absolute().parents:
        if os.path.lexists(folder):
            return None if folder.is_dir() else folder
    return None


@contextmanager
def naming_option(option: str, path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which option of the command line a file belongs to that cannot be written.

    Raises:
        OutputError: the file cannot be written; the text names the option.
        BrokenPipeError: the reader of a pipe has gone.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{option} {path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def file_of_option(option: str, path: str | os.PathLike[str]) -> Iterator[Path]:
    """`whole_file` for an option of the command line, with the errors of `naming_option`."""
    with naming_option(option, path), whole_file(path) as draft:
        yield draft


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
    folder = next(each for each in real_path(path).parents if each.is_dir())
    if not os.path.exists(path):
        try:
            probe(folder)
        except OSError as error:
            raise ScenarioError(
                f"{option} {path}: cannot be written: {folder}: {error.strerror or error}"
            ) from None
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
