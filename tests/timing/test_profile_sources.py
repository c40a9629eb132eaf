"""Where profiles are read from: scenarios, npz files, result folders of profilers (`spec 04, 4`)."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynamo_sim.errors import ScenarioError, SimulationError
from dynamo_sim.timing.build import build_timing
from dynamo_sim.timing.polynomial import PolynomialTiming
from dynamo_sim.timing.profile import ProfileTiming
from dynamo_sim.timing.profile_grid import ARRAYS
from dynamo_sim.timing.profile_points import decode_grid
from dynamo_sim.timing.profile_source import load_profile
from tests.timing.test_profile import INSIDE

PREFILL = {"prefill_isl": [100, 1000, 2000], "prefill_ttft": [20.0, 40.0, 70.0]}
DECODE = {  # two context lengths, each with its own loads
    "x_kv_usage": [0.1, 0.3, 0.2, 0.6],
    "y_context_length": [100.0, 100.0, 400.0, 400.0],
    "z_itl": [5.0, 9.0, 6.0, 14.0],
    "max_kv_tokens": [1000],
}


def write(path: Path, arrays: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: np.asarray(values) for name, values in arrays.items()})
    return path


def pair(folder: Path, tp: tuple[int, ...] = ()) -> Path:
    """Result files of the planner's profiler; with ``tp`` one row for each size, twice as fast each time."""
    for name, arrays in (("prefill", PREFILL), ("decode", DECODE)):
        rows: dict[str, Any] = dict(arrays)
        if tp:
            rows = {key: [values] * len(tp) for key, values in arrays.items()}
            times = "prefill_ttft" if name == "prefill" else "z_itl"
            rows[times] = [[value / size for value in arrays[times]] for size in tp]
            rows["tp"] = [[size] for size in tp]
            rows["model"] = [["some/model"]] * len(tp)
        write(folder / f"h200_{name}.npz", rows)
    return folder


def grid_npz(path: Path, dtype: Any = np.float64, **changes: Any) -> Path:
    return write(path, {name: np.asarray(v, dtype=dtype) for name, v in {**INSIDE, **changes}.items()})


def layers(folder: Path, meta: str = "model: meta-llama/Llama-3.1-8B\n") -> Path:
    """Tables of LLMServingSim's profiler, with every dense operator 10 us plus 1 us a token."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.yaml").write_text(meta)
    dense = [
        f"{layer},{tokens},{10 + tokens}"
        for layer in ("qkv_proj", "layernorm", "embedding", "final_layernorm")
        for tokens in (1, 2, 64)
    ]
    (folder / "dense.csv").write_text("\n".join(["layer,tokens,time_us", *dense]))
    head = [f"lm_head,{sequences},100" for sequences in (1, 2)]
    (folder / "per_sequence.csv").write_text("\n".join(["layer,sequences,time_us", *head]))
    attention = ["16,0,0,0,50", "64,0,0,0,200", "16,16,0,0,70"]
    attention += [f"0,0,{n},{kv},{n * kv}" for n in (1, 2) for kv in (16, 64)]
    with gzip.open(folder / "attention.csv.gz", "wt") as out:
        out.write("\n".join(["prefill_chunk,kv_prefill,n_decode,kv_decode,time_us", *attention]))
    return folder


def args(**changes: Any) -> Any:
    plain = {
        "engine_type": "vllm",
        "num_gpu_blocks": 32,
        "block_size": 4,
        "speedup_ratio": 2.0,
        "decode_speedup_ratio": 1.0,
    }
    return SimpleNamespace(**{**plain, "planner_profile_data": None, "aic_backend": None, **changes})


def problem_of(source: Any, tp: int | None = None) -> str:
    with pytest.raises(ScenarioError) as error:
        load_profile(source, tp)
    return str(error.value)


def test_engine_arguments_choose_the_timing(tmp_path: Path) -> None:
    assert isinstance(build_timing(args()), PolynomialTiming)
    assert build_timing(args()).decode_ms(28, 1, 1) == pytest.approx(16.322988 / 2)
    for source in (INSIDE, str(grid_npz(tmp_path / "p.npz")), str(pair(tmp_path / "pair"))):
        assert isinstance(build_timing(args(planner_profile_data=source)), ProfileTiming)


@pytest.mark.parametrize("ratios", [(0.0, math.inf), (math.inf, 0.0)])
def test_zero_times_infinity_scales_nothing_for_sglang_and_is_refused_by_others(
    ratios: tuple[float, float],
) -> None:
    changes = dict(zip(("speedup_ratio", "decode_speedup_ratio"), ratios, strict=True))
    assert build_timing(args(engine_type="sglang", **changes)).decode_ms(0, 1, 1) == 5.74
    with pytest.raises(SimulationError, match="cannot take nan s"):
        build_timing(args(**changes)).decode_ms(0, 1, 1)


def test_durations_of_aiconfigurator_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"aic_backend 'vllm'.*leave it out"):
        build_timing(args(aic_backend="vllm"))


@pytest.mark.parametrize("dtype", ["<f8", ">f8"])
def test_an_npz_grid_is_read_and_written_unchanged(tmp_path: Path, dtype: str) -> None:
    first = load_profile(grid_npz(tmp_path / "first.npz", dtype)).grid
    first.save(tmp_path / "second")
    second = load_profile(tmp_path / "second").grid
    for name in ARRAYS:
        assert getattr(first, name).tolist() == getattr(second, name).tolist() == INSIDE[name]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_an_npz_grid_of_another_type_is_refused_as_by_the_reference(tmp_path: Path, dtype: Any) -> None:
    path = grid_npz(tmp_path / "p.npz", dtype)
    problem = f"prefill_isl is {np.dtype(dtype)}; store it as float64"
    assert problem_of(path) == f'Failed to load planner_profile_data from "{path}": {problem}'


def test_files_that_are_no_profile_say_so(tmp_path: Path) -> None:
    assert problem_of(tmp_path / "none.npz").endswith("there is no such file")
    (tmp_path / "text.npz").write_text("hello")
    assert problem_of(tmp_path / "text.npz").endswith("text.npz is no npz file")
    assert "it holds something" in problem_of(write(tmp_path / "else.npz", {"something": [1.0]}))
    without = {name: np.asarray(v, dtype=np.float64) for name, v in INSIDE.items() if name != "decode_itl"}
    assert problem_of(write(tmp_path / "short.npz", without)).endswith("decode_itl is missing")
    assert problem_of({**INSIDE, "prefill_isl": [1, 2]}) == (
        "Failed to load planner_profile_data: prefill_isl has 2 values, but prefill_ttft_ms 4"
    )


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, prefill_isl=np.array([object()], dtype=object))
    assert "no npz file of numbers" in problem_of(path)


def test_scattered_points_become_a_grid_that_keeps_each_of_them() -> None:
    active = np.array([100.0, 300.0, 200.0, 600.0])
    context = np.array([100, 100, 400, 400])
    rows, columns, itl = decode_grid(active, context, np.array([5.0, 9.0, 6.0, 14.0]))
    assert rows.tolist() == [100, 200, 300, 600]
    assert columns.tolist() == [100, 400]
    assert itl[:, 0].tolist() == [5.0, 7.0, 9.0, 15.0]  # 2 ms more for every 100 tokens
    assert itl[:, 1].tolist() == [4.0, 6.0, 8.0, 14.0]


def test_filled_in_cells_never_fall_towards_a_fuller_cache() -> None:
    active = np.array([100.0, 200.0, 300.0, 100.0, 600.0])
    context = np.array([1, 1, 1, 2, 2])
    itl = decode_grid(active, context, np.array([5.0, 9.0, 8.0, 5.0, 5.0]))[2]
    assert itl[:, 0].tolist() == [5.0, 9.0, 8.0, 8.0]


def test_a_planner_folder_is_read_in_all_its_forms(tmp_path: Path) -> None:
    flat = pair(tmp_path / "flat")
    nested = tmp_path / "nested"
    write(nested / "selected_prefill_interpolation" / "raw_data.npz", PREFILL)
    write(nested / "selected_decode_interpolation" / "raw_data.npz", DECODE)
    labelled = pair(tmp_path / "labelled", tp=(1,))
    sources = [flat, flat / "h200_prefill.npz", flat / "h200_decode.npz", nested, labelled]
    sources.append(nested / "selected_decode_interpolation" / "raw_data.npz")
    for source in sources:
        profile = load_profile(source)
        assert profile.grid.prefill_isl.tolist() == [100, 1000, 2000]
        assert profile.grid.decode_active_kv_tokens.tolist() == [100, 200, 300, 600]
        assert profile.grid.decode_itl[:, 0].tolist() == [5.0, 7.0, 9.0, 15.0]
        assert len(profile.decode_points) == 4
    assert load_profile(labelled).labels["model"] == "some/model"


def test_one_of_several_tensor_parallel_sizes_has_to_be_chosen(tmp_path: Path) -> None:
    folder = pair(tmp_path / "both", tp=(1, 2))
    assert "holds tensor-parallel sizes [1, 2]; take one of them out" in problem_of(folder)
    assert "no measurements of tensor-parallel size 4, only of [1, 2]" in problem_of(folder, tp=4)
    assert load_profile(folder, tp=2).grid.prefill_ttft_ms.tolist() == [10.0, 20.0, 35.0]


def test_broken_planner_files_say_what_is_wrong(tmp_path: Path) -> None:
    alone = write(tmp_path / "alone" / "h_prefill.npz", PREFILL)
    assert "holds prefill measurements only" in problem_of(alone)
    assert "not exactly one profile in this folder (grid: none; prefill: h_prefill.npz" in problem_of(
        alone.parent
    )
    folder = pair(tmp_path / "pair")
    write(folder / "h200_decode.npz", {**DECODE, "z_itl": [1.0]})
    assert "different numbers of points: x_kv_usage 4, y_context_length 4, z_itl 1" in problem_of(folder)
    write(folder / "h200_decode.npz", {name: DECODE[name] for name in ("x_kv_usage", "z_itl")})
    assert "y_context_length, max_kv_tokens missing" in problem_of(folder)
    write(folder / "h200_decode.npz", {**DECODE, "y_context_length": [100.0] * 4})
    assert "decode was measured at 1 context length" in problem_of(folder)
    write(folder / "h200_decode.npz", {**DECODE, "y_context_length": [100.0, 400.0, 400.0, 400.0]})
    assert "context length 100 was measured with one load only" in problem_of(folder)
    (tmp_path / "empty").mkdir()
    assert "no profiler results in this folder; it needs" in problem_of(tmp_path / "empty")


def test_a_step_of_a_layer_profile_is_the_sum_of_its_operators(tmp_path: Path) -> None:
    profile = load_profile(layers(tmp_path / "gpu"))
    # 32 layers of (qkv + 2 layernorms + attention), embedding and final layernorm, lm_head
    assert profile.grid.prefill_isl.tolist() == [16, 64]
    assert profile.grid.prefill_ttft_ms[0] == pytest.approx((32 * (3 * 26 + 50) + 2 * 26 + 100) / 1000)
    assert profile.grid.decode_context_length.tolist() == [16, 64]
    assert profile.grid.decode_active_kv_tokens.tolist() == [16, 32, 64, 128]
    assert profile.grid.decode_itl[0, 0] == pytest.approx((32 * (3 * 11 + 16) + 2 * 11 + 100) / 1000)
    assert profile.grid.decode_itl[3, 1] == pytest.approx((32 * (3 * 12 + 128) + 2 * 12 + 100) / 1000)
    assert profile.labels["layers"] == "32"


def test_a_layer_profile_has_to_say_how_many_layers_there_are(tmp_path: Path) -> None:
    folder = layers(tmp_path / "gpu", meta="model: some/model\n")
    assert "how many layers some/model has; add a line such as `layers: 32`" in problem_of(folder)
    assert load_profile(layers(folder, meta="model: some/model\nlayers: 8\n")).labels["layers"] == "8"


def test_broken_layer_folders_say_what_is_wrong(tmp_path: Path) -> None:
    folder = layers(tmp_path / "gpu")
    (folder / "dense.csv").write_text("layer,tokens,time_us\nqkv_proj,1,5\n")
    assert "embedding" in problem_of(folder)
    (folder / "dense.csv").write_text("layer,tokens\nqkv_proj,1\n")
    assert "dense.csv has no column time_us" in problem_of(folder)
    (layers(folder) / "attention.csv.gz").unlink()
    assert "attention.csv is missing" in problem_of(folder)
    (folder / "meta.yaml").unlink()
    assert "meta.yaml is missing" in problem_of(folder)
