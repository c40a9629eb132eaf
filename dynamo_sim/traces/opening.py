"""Opening trace files: plain, `.gz`, `.zst`; what is no file to read is refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO

import zstandard

from dynamo_sim.files.input import refuse_device

GZIP_SUFFIXES = (".gz",)
ZSTD_SUFFIXES = (".zst", ".zstd")
BUFFER_BYTES = 1 << 18
ZSTD_CHUNK_BYTES = 1 << 14
"""Compressed bytes at a time; a few of them can stand for very many."""


def open_trace(path: Path) -> IO[bytes]:
    """The bytes of a trace, decompressed as its suffix says.

    Raises:
        OSError: it cannot be opened, or is a device: those never end.
    """
    refuse_device(path)
    suffix = path.suffix.lower()
    if suffix in GZIP_SUFFIXES:
        return io.BufferedReader(gzip.open(path, "rb"), BUFFER_BYTES)
    if suffix in ZSTD_SUFFIXES:
        return io.BufferedReader(_ZstdFrames(path.open("rb")), BUFFER_BYTES)
    return path.open("rb")


class _ZstdFrames(io.RawIOBase):
    """The content of zstd frames one after another; the last one has to be whole."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        """Fill a buffer; 0 at the end.

        Raises:
            EOFError: the file ends in the middle of a frame.
            zstandard.ZstdError: it is damaged, or no zstd file.
        """
        while not self._ready and self._decompress():
            pass
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decompress(self) -> bool:
        """Take in some more; False at the end of the file."""
        compressed = self._compressed or self._source.read(ZSTD_CHUNK_BYTES)
        if not compressed:
            if self._begun:
                raise EOFError("the file is cut off: its last zstd frame has no end")
            return False
        self._ready = memoryview(self._frame.decompress(compressed))
        self._compressed = b""
        self._begun = not self._frame.eof
        if self._frame.eof:
            self._compressed = self._frame.unused_data
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        return True

    def close(self) -> None:
        """Close the file underneath too."""
        self._source.close()
        super().close()
