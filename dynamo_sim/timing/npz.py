"""Reading an npz file of numbers that somebody else may have made: how large it is is looked up first."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynamo_sim.files.input import refuse_all_but_files
from dynamo_sim.text import cut

NpzArrays = dict[str, npt.NDArray[Any]]

MAX_BYTES = 64 << 20
"""Most bytes of an npz file, unpacked; the largest profiles known have less than one million."""

PLAIN_KINDS = "biufcmMSUV"
"""Kinds of NumPy types that a plain array has; whether it holds numbers is checked where it is used."""


def read_npz(path: Path) -> NpzArrays:
    """The arrays of an npz file. Members that are no arrays are left out.

    Raises:
        ValueError: it is no npz file of numbers, or holds more of them than any profile.
        OSError: it cannot be read, or is no file.
    """
    refuse_all_but_files(path)
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path.name} is no npz file")
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_huge(path, archive)
            members = [name for name in archive.namelist() if name.endswith(".npy")]
        with np.load(path, allow_pickle=False) as arrays:
            return {name.removesuffix(".npy"): _plain(name, arrays[name]) for name in members}
    except (OSError, _Refused):
        raise
    # What a damaged member raises is up to zipfile, zlib, and Python's own parser, which reads the header of an array:
    # IndexError, TypeError, SyntaxError, tokenize.TokenError, EOFError, MemoryError and more.
    except Exception as error:
        raise ValueError(f"{path.name} is no npz file of numbers, or is damaged") from error


class _Refused(ValueError):
    """The file can be read, and holds what no profile has."""


def _plain(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.names is not None or array.dtype.kind not in PLAIN_KINDS:
        raise _Refused(f"{name} holds {cut(str(array.dtype))}, not numbers")
    return array


def _refuse_huge(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise `_Refused` for files that unpack, or arrays that unfold, to more than `MAX_BYTES` together."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MAX_BYTES:
        raise _Refused(f"{path.name} unpacks to {unpacked:,} bytes; a profile has at most {MAX_BYTES:,}")
    for member in archive.infolist():
        if not member.filename.endswith(".npy"):
            continue
        with archive.open(member) as file:
            version = np.lib.format.read_magic(file)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }.get(version)
            if read_header is None:
                raise _Refused(f"{member.filename} is of version {version[0]}.{version[1]}")
            shape, _, kind = read_header(file)
        claimed = math.prod(shape) * kind.itemsize
        if claimed > member.file_size:
            raise _Refused(
                f"{path.name} is damaged: {member.filename} claims {claimed:,} bytes and has {member.file_size:,}"
            )
