"""Where timing profiles come from: numbers in a scenario, an npz file, or the result folder of a profiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynamo_sim.errors import ScenarioError
from dynamo_sim.timing import layer_results, planner_results
from dynamo_sim.timing.npz import NpzArrays, read_npz
from dynamo_sim.timing.profile_grid import Floats, ProfileGrid


@dataclass(frozen=True)
class Profile:
    """A timing profile and what is known about it.

    Attributes:
        grid: the durations a run interpolates in.
        decode_points: what was measured, shape (n, 3): KV tokens in use, context tokens, ms.
        labels: facts for people, such as the model.
        files: what it was read from.
    """

    grid: ProfileGrid
    decode_points: Floats
    labels: dict[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


def load_profile(source: str | Path | Mapping[str, Any], tp: int | None = None) -> Profile:
    """Read a timing profile.

    Args:
        source: the five arrays of `ProfileGrid`; or an npz file with them; or either file of a pair that the
            planner's profiler wrote; or a folder that holds one such file or pair, or the tables of
            LLMServingSim's profiler.
        tp: the tensor-parallel size to take from files that hold several; a profile that is one has no choice.

    Raises:
        ScenarioError: there is no usable profile; the text names the file and what is wrong with it.
    """
    if isinstance(source, Mapping):
        try:
            return _native(ProfileGrid.from_mapping(source))
        except ValueError as error:
            raise ScenarioError(f"Failed to load planner_profile_data: {error}") from error
    path = Path(source)
    try:
        return _from_folder(path, tp) if path.is_dir() else _from_file(path, tp)
    except FileNotFoundError as error:
        problem = (
            "there is no such file" if str(error.filename) == str(path) else f"{error.filename} is missing"
        )
    except OSError as error:
        problem = error.strerror or str(error)
    except (ValueError, ScenarioError) as error:
        problem = str(error)
    raise ScenarioError(f'Failed to load planner_profile_data from "{path}": {problem}')


def _native(grid: ProfileGrid, *files: Path) -> Profile:
    active, context = np.meshgrid(grid.decode_active_kv_tokens, grid.decode_context_length, indexing="ij")
    points = np.stack([active.ravel(), context.ravel(), grid.decode_itl.ravel()], axis=1)
    return Profile(grid, points, files=files)


def _from_file(path: Path, tp: int | None) -> Profile:
    arrays = read_npz(path)
    kind = planner_results.kind_of(arrays)
    if kind == "grid":
        _expect_no_size(tp)
        return _native(ProfileGrid.from_npz(arrays), path)
    if kind is None:
        raise ValueError(f"no timing profile; it holds {', '.join(arrays) or 'nothing'}")
    partner = _partner(path, kind)
    pair = {kind: (path, arrays), _other(kind): (partner, read_npz(partner))}
    return _from_pair(*pair["prefill"], *pair["decode"], tp)


def _from_folder(folder: Path, tp: int | None) -> Profile:
    if layer_results.is_layer_folder(folder):
        _expect_no_size(tp)
        grid, points, labels = layer_results.convert(folder)
        return Profile(grid, points, labels, (folder,))
    found: dict[str, list[tuple[Path, NpzArrays]]] = {"grid": [], "prefill": [], "decode": []}
    for file in sorted([*folder.glob("*.npz"), *folder.glob("selected_*_interpolation/raw_data.npz")]):
        arrays = read_npz(file)
        kind = planner_results.kind_of(arrays)
        if kind is not None:
            found[kind].append((file, arrays))
    counts = tuple(len(files) for files in found.values())
    if counts == (1, 0, 0):
        _expect_no_size(tp)
        file, arrays = found["grid"][0]
        return _native(ProfileGrid.from_npz(arrays), file)
    if counts == (0, 1, 1):
        return _from_pair(*found["prefill"][0], *found["decode"][0], tp)
    if not any(counts):
        raise ValueError(
            "no profiler results in this folder; it needs one npz with a grid, a pair of npz files of the "
            "planner's profiler (selected_prefill_interpolation and selected_decode_interpolation), "
            "or dense.csv, per_sequence.csv, attention.csv(.gz) and meta.yaml of LLMServingSim's profiler"
        )
    names = "; ".join(
        f"{kind}: {', '.join(f.name for f, _ in files) or 'none'}" for kind, files in found.items()
    )
    raise ValueError(f"not exactly one profile in this folder ({names}); name one of the files instead")


def _expect_no_size(tp: int | None) -> None:
    if tp is not None:
        raise ValueError(f"found --tp {tp}, and this is a single profile that names no tensor-parallel sizes")


def _from_pair(
    prefill: Path, prefills: NpzArrays, decode: Path, decodes: NpzArrays, tp: int | None
) -> Profile:
    grid, points, labels = planner_results.convert(prefills, decodes, tp)
    return Profile(grid, points, labels, (prefill, decode))


def _other(kind: str) -> str:
    return "decode" if kind == "prefill" else "prefill"


def _partner(path: Path, kind: str) -> Path:
    """The other file of a pair: the same path with the other word in the name of the file or its folder."""
    for candidate in (
        path.with_name(path.name.replace(kind, _other(kind))),
        path.parent.with_name(path.parent.name.replace(kind, _other(kind))) / path.name,
    ):
        if candidate != path and candidate.exists():
            return candidate
    raise ValueError(
        f"holds {kind} measurements only, and no file named like it holds the {_other(kind)} ones"
    )
