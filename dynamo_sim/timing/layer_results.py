"""Result folders of LLMServingSim's profiler: the time of every operator of one transformer layer.

``dense.csv`` (layer, tokens, time_us), ``per_sequence.csv`` (layer, sequences, time_us), ``attention.csv``
or ``attention.csv.gz`` (prefill_chunk, kv_prefill, n_decode, kv_decode, time_us) and ``meta.yaml``. A step
of the model is the sum of its operators, so that pure prefills of one request and pure decode steps of n
equally long requests make a planner profile.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from dynamo_sim.files.input import read_whole, refuse_all_but_files
from dynamo_sim.timing.profile_grid import Floats, ProfileGrid
from dynamo_sim.timing.profile_points import decode_grid

if TYPE_CHECKING:
    import pandas as pd

ONCE_A_STEP = ("embedding", "final_layernorm")
TWICE_A_LAYER = ("layernorm",)  # before attention and before the feed-forward part
# The profiler runs models cut to one layer and does not note how many they have.
LAYERS_OF_MODEL = {"meta-llama/Llama-3.1-8B": 32}

MAX_ROWS = 1_000_000
MAX_META_BYTES = 1 << 20


def is_layer_folder(folder: Path) -> bool:
    return (folder / "dense.csv").exists() and (folder / "per_sequence.csv").exists()


def convert(folder: Path) -> tuple[ProfileGrid, Floats, dict[str, str]]:
    """The grid of a folder.

    Returns:
        The grid; the measured decode points, shape (n, 3): KV tokens in use, context tokens, ms; labels.

    Raises:
        ValueError: a column or an operator is missing, or the number of layers is unknown.
        OSError: a file is missing.
    """
    meta = yaml.safe_load(read_whole(folder / "meta.yaml", MAX_META_BYTES)) or {}
    layers = _layers(meta)
    dense = _table(folder / "dense.csv", ["tokens", "layer"]).unstack("layer")
    once = dense[list(ONCE_A_STEP)].sum(axis=1)
    each_layer = dense.drop(columns=list(ONCE_A_STEP)).sum(axis=1)
    each_layer += dense[list(TWICE_A_LAYER)].sum(axis=1)
    by_sequences = _table(folder / "per_sequence.csv", ["sequences", "layer"]).unstack("layer").sum(axis=1)
    attention_file = next(iter(sorted(folder.glob("attention.csv*"))), folder / "attention.csv")
    attention = _table(attention_file, ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode"])

    def step_ms(tokens: Any, sequences: Any, attention_us: Any) -> Floats:
        others = np.interp(tokens, once.index, once) + np.interp(sequences, by_sequences.index, by_sequences)
        layer = np.interp(tokens, each_layer.index, each_layer) + attention_us
        return np.asarray((layers * layer + others) / 1000.0, dtype=np.float64)

    prefills = attention.xs((0, 0, 0), level=("kv_prefill", "n_decode", "kv_decode"))
    isl = prefills.index.to_numpy(dtype=np.float64)
    decodes = attention.xs((0, 0), level=("prefill_chunk", "kv_prefill"))
    batch = decodes.index.get_level_values("n_decode").to_numpy(dtype=np.float64)
    context = decodes.index.get_level_values("kv_decode").to_numpy(dtype=np.float64)
    itl_ms = step_ms(batch, batch, decodes.to_numpy())
    active = batch * context
    grid = ProfileGrid(isl, step_ms(isl, 1, prefills.to_numpy()), *decode_grid(active, context, itl_ms))
    labels = {name: str(meta[name]) for name in ("model", "gpu", "vllm_version", "variant") if name in meta}
    return grid, np.stack([active, context, itl_ms], axis=1), {**labels, "layers": str(layers)}


def _layers(meta: dict[str, Any]) -> int:
    layers = meta.get("layers", LAYERS_OF_MODEL.get(str(meta.get("model"))))
    if not isinstance(layers, int) or layers < 1:
        raise ValueError(
            f"meta.yaml does not say how many layers {meta.get('model', 'the model')} has; "
            "add a line such as `layers: 32`"
        )
    return layers


def _table(file: Path, keys: list[str]) -> pd.Series[float]:
    """Microseconds by ``keys``, sorted; repeated measurements become their mean."""
    import pandas as pd  # half of the start of a run, and most runs read no such table

    refuse_all_but_files(file)
    rows = pd.read_csv(file, nrows=MAX_ROWS + 1)
    if len(rows) > MAX_ROWS:
        raise ValueError(f"{file.name} has more than {MAX_ROWS:,} rows")
    missing = [name for name in (*keys, "time_us") if name not in rows.columns]
    if missing:
        raise ValueError(f"{file.name} has no column {', '.join(missing)}")
    if rows[[*keys, "time_us"]].isna().any().any():
        raise ValueError(f"{file.name} has empty cells")
    return rows.groupby(keys)["time_us"].mean()
