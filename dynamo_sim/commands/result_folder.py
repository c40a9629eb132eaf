"""The folder of a run's results: complete, or not there at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from dynamo_sim.errors import ScenarioError

RESULT_SUFFIXES = {".json", ".jsonl", ".yaml", ".csv", ".parquet", ".png", ".svg", ".html"}
"""What a run writes; a folder with anything else in it is not overwritten."""


class ResultFolder:
    """Collects results in a folder beside `target` and renames it when all are there.

    A context manager. Write into `work`; leaving without an error puts it in the place of `target`, replacing
    an earlier result, and leaving with one removes everything, also parent folders that were made for it.

    Raises:
        ScenarioError: `target` is not free to be written, before anything has been written.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self._made_parents: list[Path] = []
        self._check()

    def _check(self) -> None:
        if self.target.is_dir() and not self.target.is_symlink():
            entries = sorted(self.target.iterdir())
            foreign = [entry for entry in entries if entry.is_dir() or entry.suffix not in RESULT_SUFFIXES]
            if not entries:
                return
            if foreign or not (self.target / "summary.json").exists():
                first = (foreign or entries)[0].name
                raise ScenarioError(
                    f"{self.target}: is not the folder of an earlier result (it has {first!r}); "
                    "choose another one with --out"
                )
        elif os.path.lexists(self.target):
            raise ScenarioError(f"{self.target}: exists and is not a folder; choose another one with --out")

    def __enter__(self) -> ResultFolder:
        parent = self.target.absolute().parent
        missing = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        try:
            parent.mkdir(parents=True, exist_ok=True)
            self._made_parents = missing
            self.work = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.", dir=parent))
            self.work.chmod(0o777 & ~_umask())
        except OSError as error:
            self._remove_parents()
            raise ScenarioError(f"{self.target}: cannot be written: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._put_in_place()
        finally:
            if self.work.exists():
                shutil.rmtree(self.work, ignore_errors=True)
                self._remove_parents()

    def _put_in_place(self) -> None:
        if not self.target.exists():
            self.work.rename(self.target)
            return
        old = self.work.with_name(self.work.name + ".old")
        self.target.rename(old)
        try:
            self.work.rename(self.target)
        except OSError:
            old.rename(self.target)
            raise
        shutil.rmtree(old, ignore_errors=True)

    def _remove_parents(self) -> None:
        for folder in self._made_parents:
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
