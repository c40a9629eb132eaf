"""The numbers of a planner profile: a curve of prefill times, a grid of inter-token times (`spec 04, 4`)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ARRAYS = ("prefill_isl", "prefill_ttft_ms", "decode_active_kv_tokens", "decode_context_length", "decode_itl")
_AXES = ("prefill_isl", "decode_active_kv_tokens", "decode_context_length")


@dataclass(frozen=True, eq=False)
class ProfileGrid:
    """Measured durations; between the points straight lines, outside them the first or last line continued.

    Attributes:
        prefill_isl: prompt tokens of the prefill points, shape (p,), p >= 2, rising.
        prefill_ttft_ms: their durations, shape (p,).
        decode_active_kv_tokens: KV tokens in use, shape (a,), a >= 2, rising.
        decode_context_length: mean tokens of the requests in the batch, shape (c,), c >= 2, rising.
        decode_itl: ms of a decode step, shape (a, c).

    Raises:
        ValueError: the arrays are not such a grid; the text says which and why.
    """

    prefill_isl: Floats
    prefill_ttft_ms: Floats
    decode_active_kv_tokens: Floats
    decode_context_length: Floats
    decode_itl: Floats

    def __post_init__(self) -> None:
        for name in ARRAYS:
            self._check_values(name, 2 if name == "decode_itl" else 1)
        for name in _AXES:
            self._check_axis(name)
        points, durations = len(self.prefill_isl), len(self.prefill_ttft_ms)
        if points != durations:
            raise ValueError(f"prefill_isl has {points} values, but prefill_ttft_ms {durations}")
        shape = (len(self.decode_active_kv_tokens), len(self.decode_context_length))
        if self.decode_itl.shape != shape:
            raise ValueError(
                f"decode_itl has the shape {self.decode_itl.shape}, but {shape[0]} decode_active_kv_tokens "
                f"(rows) and {shape[1]} decode_context_length (columns) need {shape}"
            )

    def floors(self) -> Iterator[str]:
        """One sentence for each kind of durations that are raised in a run (`spec 04, 4`)."""
        if float(self.prefill_ttft_ms.min()) < 0.0:
            yield "prefill durations below 0 ms count as 0 ms in a run"
        if float(self.decode_itl.min()) < 1.0:
            yield "decode durations below 1 ms count as 1 ms in a run"

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> ProfileGrid:
        """A grid from numbers under the five names of the arrays, as a scenario may hold them.

        Raises:
            ValueError: a name is missing or unknown, or the numbers are no grid.
        """
        problems = [f"{name} is missing" for name in ARRAYS if name not in values]
        problems += [f"{name} is not one of {', '.join(ARRAYS)}" for name in values if name not in ARRAYS]
        if problems:
            raise ValueError("; ".join(problems))
        arrays: dict[str, Floats] = {}
        for name in ARRAYS:
            try:
                arrays[name] = _of_numbers(values[name])
            except (TypeError, ValueError, OverflowError):
                expected = "rows of equal length" if name == "decode_itl" else "a list"
                raise ValueError(f"{name} must be {expected} of numbers") from None
        return cls(**arrays)

    @classmethod
    def from_npz(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> ProfileGrid:
        """A grid from the float64 arrays of an npz file; other arrays are ignored.

        Raises:
            ValueError: an array is missing or of another type, or the numbers are no grid.
        """
        for name in ARRAYS:
            if name not in arrays:
                raise ValueError(f"{name} is missing")
            if arrays[name].dtype.newbyteorder("=") != np.float64:
                raise ValueError(f"{name} is {arrays[name].dtype}; store it as float64")
        return cls(**{name: np.ascontiguousarray(arrays[name], dtype=np.float64) for name in ARRAYS})

    def save(self, path: str | Path) -> None:
        """Write the grid as an npz file that the reference reads, too."""
        archive = io.BytesIO()  # a device cannot be written here and there, as np.savez does
        np.savez(archive, **{name: getattr(self, name) for name in ARRAYS})
        Path(path).write_bytes(archive.getvalue())

    def _check_values(self, name: str, dimensions: int) -> None:
        array: Floats = getattr(self, name)
        if array.ndim != dimensions:
            raise ValueError(
                f"{name} must have {dimensions} dimension{'s'[: dimensions - 1]}, not {array.ndim}"
            )
        wrong = np.argwhere(~np.isfinite(array))
        if len(wrong):
            place = "".join(f"[{index}]" for index in wrong[0])
            raise ValueError(f"{name}{place} is {array[tuple(wrong[0])]}, not a finite number")

    def _check_axis(self, name: str) -> None:
        axis: Floats = getattr(self, name)
        if len(axis) < 2:
            raise ValueError(f"{name} needs at least two values, it has {len(axis)}")
        falls = np.flatnonzero(np.diff(axis) <= 0)
        if len(falls):
            at = int(falls[0])
            raise ValueError(
                f"{name} must rise from value to value, but {axis[at + 1]:g} follows {axis[at]:g} "
                f"(values {at + 1} and {at + 2})"
            )
        if axis[0] < 0:
            raise ValueError(f"{name} counts tokens, but begins at {axis[0]:g}")


def _of_numbers(values: Any) -> Floats:
    """Numbers as an array; texts that look like numbers, and true and false, are none."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or _has_bool(values):
        raise TypeError
    return array.astype(np.float64)


def _has_bool(values: Any) -> bool:
    if isinstance(values, list | tuple):
        return any(map(_has_bool, values))
    return isinstance(values, bool)
