"""Calls of a user's own code: what it raises becomes one line, with the place in their file."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynamo_sim.errors import DynamoSimError
from dynamo_sim.text import cut, shown

_OURS = Path(__file__).resolve().parents[1]
_LIBRARIES = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")})
MAX_LETTERS = 300


def called(failure: Callable[[str], DynamoSimError], function: Callable[..., Any], *arguments: Any) -> Any:
    """What ``function(*arguments)`` answers.

    Args:
        failure: makes the error of a sentence that says what the function did.

    Raises:
        DynamoSimError: the function raised anything but a KeyboardInterrupt, which comes by hand or by a signal; an
            error that `failure` has made passes as it is.
    """
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except DynamoSimError as error:
        made = failure(f"failed: {error}")
        if isinstance(error, type(made)):
            raise
        raise made from error
    except BaseException as error:
        raise failure(f"raised {raised(error)}") from error


def raised(error: BaseException) -> str:
    """An error as ``KeyError: 'x' (my_policy.py, line 7)``, on one line.

    Args:
        error: as it was caught.
    """
    try:
        said = " ".join(str(error).split())
    except Exception:
        said = "its text cannot be made"
    said = cut(said, MAX_LETTERS)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    place = "" if isinstance(error, SyntaxError) else _place(error)  # a SyntaxError says its place itself
    return f"{text}{place}"


def _place(error: BaseException) -> str:
    """The innermost line of the user's own files."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = frame.filename
        if file.startswith("<") or _is_in(file, _OURS) or any(_is_in(file, folder) for folder in _LIBRARIES):
            continue
        return f" ({shown(Path(file).name)[1:-1]}, line {frame.lineno})"
    return ""


def _is_in(file: str, folder: Path) -> bool:
    return Path(file).resolve().is_relative_to(folder)
