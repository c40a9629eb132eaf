"""Result folders of LLMServingSim's profiler: the time of every operator of one transformer layer.

``dense.csv`` (layer, tokens, time_us), ``per_sequence.csv`` (layer, sequences, time_us), ``attention.csv``
or ``attention.csv.gz`` (prefill_chunk, kv_prefill, n_decode, kv_decode, time_us) and ``meta.yaml``. A step
of the model is the sum of its operators, so that pure prefills of one request and pure decode steps of n
equally long requests make a planner profile.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamo_sim.errors import ScenarioError
from dynamo_sim.files.input import read_whole
from dynamo_sim.scenario.yaml_source import read_yaml
from dynamo_sim.text import cut, printable, shown
from dynamo_sim.timing.profile_grid import Floats, ProfileGrid
from dynamo_sim.timing.profile_points import decode_grid

if TYPE_CHECKING:
    import pandas as pd

ONCE_A_STEP = ("embedding", "final_layernorm")
TWICE_A_LAYER = ("layernorm",)  # before attention and before the feed-forward part
# The profiler runs models cut to one layer and does not note how many they have.
LAYERS_OF_MODEL = {"meta-llama/Llama-3.1-8B": 32}

TABLES = ("attention.csv", "attention.csv.gz")
"""Names the largest table may have."""

MAX_TABLE_BYTES = 64 << 20
"""Bytes of a table, unpacked; the largest known has 300 KB."""

MAX_HEADER_BYTES = 10_000
MAX_META_BYTES = 1 << 20
LABELS: tuple[str, ...] = ("model", "gpu", "vllm_version", "variant")
MAX_LAYERS = 10_000


def is_layer_folder(folder: Path) -> bool:
    return (folder / "dense.csv").exists() and (folder / "per_sequence.csv").exists()


def convert(folder: Path) -> tuple[ProfileGrid, Floats, dict[str, str]]:
    """The grid of a folder.

    An operator that was not measured at a number of tokens at which others were is interpolated there.

    Returns:
        The grid; the measured decode points, shape (n, 3): KV tokens in use, context tokens, ms; labels.

    Raises:
        ValueError: a table is damaged, a column or an operator is missing, or the number of layers is unknown.
        ScenarioError: meta.yaml is not YAML.
        OSError: a file is missing.
    """
    meta = _meta(folder / "meta.yaml")
    layers = _layers(meta)
    dense = _operators(folder / "dense.csv", "tokens", (*ONCE_A_STEP, *TWICE_A_LAYER))
    once = dense[list(ONCE_A_STEP)].sum(axis=1)
    each_layer = dense.drop(columns=list(ONCE_A_STEP)).sum(axis=1)
    each_layer += dense[list(TWICE_A_LAYER)].sum(axis=1)
    by_sequences = _operators(folder / "per_sequence.csv", "sequences").sum(axis=1)
    attention_file = next((folder / name for name in TABLES if (folder / name).exists()), folder / TABLES[0])
    attention = _table(attention_file, ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode"])

    def step_ms(tokens: Any, sequences: Any, attention_us: Any) -> Floats:
        others = np.interp(tokens, once.index, once) + np.interp(sequences, by_sequences.index, by_sequences)
        layer = np.interp(tokens, each_layer.index, each_layer) + attention_us
        return np.asarray((layers * layer + others) / 1000.0, dtype=np.float64)

    prefills = _where(attention, attention_file, kv_prefill=0, n_decode=0, kv_decode=0)
    isl = prefills.index.to_numpy(dtype=np.float64)
    decodes = _where(attention, attention_file, prefill_chunk=0, kv_prefill=0)
    batch = decodes.index.get_level_values("n_decode").to_numpy(dtype=np.float64)
    context = decodes.index.get_level_values("kv_decode").to_numpy(dtype=np.float64)
    itl_ms = step_ms(batch, batch, decodes.to_numpy())
    active = batch * context
    grid = ProfileGrid(isl, step_ms(isl, 1, prefills.to_numpy()), *decode_grid(active, context, itl_ms))
    labels = {name: cut(printable(str(meta[name]))) for name in LABELS if name in meta}
    return grid, np.stack([active, context, itl_ms], axis=1), {**labels, "layers": str(layers)}


def _meta(file: Path) -> dict[str, Any]:
    try:
        text = read_whole(file, MAX_META_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file.name} is no text file") from None
    try:
        meta = read_yaml(text, file.name).data
    except ScenarioError as error:
        raise ValueError(str(error)) from None
    if not isinstance(meta, dict | None):
        raise ValueError(f"{file.name} must be a section of keys like `model: ...`, found {shown(meta)}")
    return meta or {}


def _layers(meta: dict[str, Any]) -> int:
    model = meta.get("model")
    layers = meta.get("layers", LAYERS_OF_MODEL.get(model) if isinstance(model, str) else None)
    if type(layers) is not int or not 1 <= layers <= MAX_LAYERS:
        named = cut(printable(str(model))) if model else "the model"
        raise ValueError(
            f"meta.yaml does not say how many layers {named} has; add a line such as `layers: 32`"
        )
    return layers


def _operators(file: Path, axis: str, needed: tuple[str, ...] = ()) -> pd.DataFrame:
    """Microseconds with one row for each number of ``axis`` and one column for each operator."""
    operators = _table(file, [axis, "layer"]).unstack("layer")
    missing = [name for name in needed if name not in operators.columns]
    if missing or operators.empty:
        raise ValueError(f"{file.name} has no measurements of {', '.join(missing) or 'anything'}")
    return operators.interpolate(method="index", limit_direction="both")


def _where(table: pd.Series[float], file: Path, **zero: int) -> pd.Series[float]:
    """The rows of a table in which some columns are 0, by the others."""
    try:
        return table.xs(tuple(zero.values()), level=tuple(zero))
    except KeyError:
        raise ValueError(f"{file.name} has no rows with {', '.join(zero)} = 0") from None


def _table(file: Path, keys: list[str]) -> pd.Series[float]:
    """Microseconds by ``keys``, sorted; repeated measurements become their mean."""
    import pandas as pd  # half of the start of a run, and most runs read no such table

    content = _content(file)
    if len(content.partition(b"\n")[0]) > MAX_HEADER_BYTES:
        raise ValueError(f"{file.name} is no table: its first line has more than {MAX_HEADER_BYTES:,} bytes")
    try:
        rows = pd.read_csv(io.BytesIO(content), dtype=str, encoding="utf-8-sig")
    except ValueError as error:
        raise ValueError(f"{file.name} is no table: {cut(str(error), 200)}") from None
    missing = [name for name in (*keys, "time_us") if name not in rows.columns]
    if missing:
        raise ValueError(f"{file.name} has no column {', '.join(missing)}")
    rows = rows[[*keys, "time_us"]]
    for name in rows.columns:
        if name != "layer":
            numbers = pd.to_numeric(rows[name], errors="coerce")
            wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
            if len(wrong):
                found = rows[name].iloc[wrong[0]]
                what = "an empty cell" if pd.isna(found) else shown(found)
                raise ValueError(
                    f"{file.name}: row {wrong[0] + 1}: {name}: found {what}; must be a number from 0"
                )
            rows = rows.assign(**{name: numbers})
        elif rows[name].isna().any():
            raise ValueError(f"{file.name} has rows without a layer")
    return rows.groupby(keys)["time_us"].mean()


def _content(file: Path) -> bytes:
    """The bytes of a table, unpacked where its name ends in .gz."""
    packed = read_whole(file, MAX_TABLE_BYTES)
    if file.suffix != ".gz":
        return packed
    try:
        with gzip.open(io.BytesIO(packed)) as unpacked:
            content = unpacked.read(MAX_TABLE_BYTES + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{file.name} is damaged, or no gzip file: {error}") from None
    if len(content) > MAX_TABLE_BYTES:
        raise ValueError(f"{file.name} unpacks to more than {MAX_TABLE_BYTES:,} bytes")
    return content
