"""Reading a file that a person named: one that ends, and no more of it than it can sensibly hold."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_whole(path: Path, most_bytes: int) -> bytes:
    """The content of a file, or of a pipe that somebody already writes to.

    Raises:
        OSError: it cannot be read, is a device or a pipe with a name, or is longer than ``most_bytes``.
    """
    refuse_endless(path)
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"it has more than {most_bytes:,} bytes")
    return content


def refuse_endless(path: Path) -> None:
    """Raise OSError for what may never end: a device, or a pipe with a name, which waits until somebody writes."""
    refuse_device(path)
    if stat.S_ISFIFO(os.stat(path).st_mode) and os.path.exists(os.path.realpath(path)):
        raise OSError("it is a named pipe, not a file")


def refuse_all_but_files(path: Path) -> None:
    """Raise OSError for what cannot be read in any order: devices, pipes and sockets."""
    refuse_endless(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("it is not a file")


def refuse_device(path: str | Path) -> None:
    """Raise OSError for what never ends; a terminal at standard input does."""
    kind = os.stat(path)
    if stat.S_ISBLK(kind.st_mode) or (stat.S_ISCHR(kind.st_mode) and not _is_terminal(kind)):
        raise OSError("it is a device, not a file")


def _is_terminal(kind: os.stat_result) -> bool:
    try:
        return os.path.samestat(kind, os.fstat(0)) and os.isatty(0)
    except OSError:
        return False
