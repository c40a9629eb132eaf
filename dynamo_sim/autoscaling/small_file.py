"""Files that people write by hand: small, and with an end."""

from __future__ import annotations

import stat
from pathlib import Path

MOST_BYTES = 4_000_000
"""More is no manifest or configuration; YAML of this size takes half a minute as it is."""


def read_small_file(path: Path) -> str:
    """The text of a file.

    Raises:
        OSError: it cannot be opened, or is a device, a pipe or too large.
        ValueError: it is not UTF-8.
    """
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # of a folder Python says it itself
        raise OSError(f"it is {'a pipe' if stat.S_ISFIFO(kind) else 'a device'}, not a file")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"it is larger than {MOST_BYTES // 1_000_000} MB")
    return content.decode("utf-8")
