"""Files and folders that are written beside their places first, and then put there together: all of them, or none."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from dynamo_sim import signals

try:
    import fcntl
except ImportError:  # not on Windows: there two runs into one folder at the same moment can mix
    fcntl = None  # type: ignore[assignment]

ABANDONED_S = 60.0
"""A draft that nobody has locked is left by a process that was killed, once it is this old."""


class Drafts:
    """Outputs that are being written. At the end of the ``with`` block they are put in their places.

    After an error, or a signal that ends the command, nothing is put anywhere. A signal that comes while they are being
    put in place waits until they are. Drafts are removed in any case; those that a killed process left are removed by
    whoever writes to the same place next.
    """

    def __init__(self) -> None:
        self._drafts: list[Path] = []
        self._locks: list[int] = []
        self._steps: list[tuple[Path, Callable[[], None]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._put_in_place()
        finally:
            for draft in self._drafts:
                _remove(draft)
            for lock in self._locks:
                os.close(lock)

    def file(self, path: str | os.PathLike[str]) -> Path:
        """Where to write the file ``path``, whose folders are made. Pipes and devices are written directly.

        Raises:
            OSError: a folder cannot be made or written.
        """
        if os.path.exists(path) and not os.path.isfile(
            path
        ):  # before links are followed: pipes have no real path
            return Path(path)
        target = real_path(path)
        draft = self._draft_of(target, Path.touch)
        self._steps.append((target, lambda: os.replace(draft, target)))
        return draft

    def folder(self, target: Path, names: Iterable[str]) -> Path:
        """A new folder to write to, whose files will be those of ``target``; its parents are made.

        Args:
            target: a real path. A folder that is there is kept, with whatever else is in it.
            names: of all files an earlier content may have; those that are not written again are removed.

        Raises:
            OSError: a folder cannot be made.
        """
        draft = self._draft_of(target, Path.mkdir)
        self._steps.append((target, lambda: _put_folder(draft, target, names)))
        return draft

    def _draft_of(self, target: Path, make: Callable[[Path], None]) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        beginning = f".{target.name[:40]}."  # a folder holds no names of any length
        _remove_abandoned(target.parent, beginning)
        draft = target.with_name(f"{beginning}{uuid4().hex}.tmp")
        self._drafts.append(draft)
        make(draft)
        self._locks += [] if (lock := _lock(draft, wait=False)) is None else [lock]
        return draft

    def _put_in_place(self) -> None:
        signals.check()
        for folder in sorted({target.parent for target, _ in self._steps}):
            # One after another: two processes that replaced files of one folder by turns would mix them.
            self._locks += [] if (lock := _lock(folder, wait=True)) is None else [lock]
        with signals.held_back():
            for target, step in self._steps:
                try:
                    step()
                except OSError as error:
                    raise OSError(error.errno, error.strerror, str(target)) from error
        signals.check()


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write: a draft that replaces ``path``, whose folders are made, once it is complete.

    Pipes and devices are written directly. A command that was told to end puts nothing in place.

    Raises:
        OSError: the file cannot be written.
    """
    with Drafts() as drafts:
        yield drafts.file(path)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, also through folders that are not there and links that lead nowhere."""
    return Path(os.path.realpath(path))


def probe(folder: Path) -> None:
    """Raise OSError where no file can be made in a folder: of a read-only medium, or made up by the system."""
    os.rmdir(tempfile.mkdtemp(prefix=".", suffix=".tmp", dir=folder))


def _put_folder(draft: Path, target: Path, names: Iterable[str]) -> None:
    if not target.exists():
        draft.rename(target)
        return
    written = {path.name for path in draft.iterdir()}
    for name in sorted(written):
        os.replace(draft / name, target / name)
    for name in names:
        if name not in written:
            (target / name).unlink(missing_ok=True)


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


def _remove_abandoned(folder: Path, beginning: str) -> None:
    """Remove drafts of a name that no process has locked any more."""
    if fcntl is None:
        return
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(beginning) and name.endswith(".tmp"):
                draft = folder / name
                lock = _lock(draft, wait=False)
                if lock is None:
                    continue
                if time.time() - os.fstat(lock).st_mtime > ABANDONED_S:
                    _remove(draft)
                os.close(lock)


def _lock(path: Path, wait: bool) -> int | None:
    """A descriptor that holds the lock of a file or folder until it is closed.

    None where another process has it, and where there are no locks.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    except BaseException:  # a signal that ends the command, while another process has the lock
        os.close(descriptor)
        raise
    return descriptor
