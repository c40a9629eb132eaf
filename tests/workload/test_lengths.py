"""Lengths follow the distribution that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynamo_sim.errors import TraceError
from dynamo_sim.limits import MAX_TOKENS
from tests.workload.generated_loads import requests, scenario

COUNT = 40_000
CSV = 'user,prompt,answer\na,100,1\nb,200,2\n\n"c, d",300.0,3\n'


def lengths(base_dir: Path | None = None, seed: int = 0, count: int = COUNT, **tokens: Any) -> Any:
    load = scenario(
        {"shape": "constant", "rate_rps": 1},
        base_dir,
        {"seed": seed},
        request_count=count,
        **tokens,
    )
    taken = requests(load)
    return (
        np.array([request.input_tokens for request in taken]),
        np.array([request.output_tokens for request in taken]),
    )


def test_a_number_is_the_length_of_all() -> None:
    inputs, outputs = lengths(count=5, input_tokens=7, output_tokens={"constant": 3})
    assert inputs.tolist() == [7] * 5 and outputs.tolist() == [3] * 5


@pytest.mark.parametrize("spread", [{"p95": 4000}, {"sigma": np.log(4) / 1.6448536}])
def test_lognormal_has_its_median_and_its_p95(spread: Any) -> None:
    inputs, _ = lengths(input_tokens={"lognormal": {"median": 1000, **spread}})
    assert np.median(inputs) == pytest.approx(1000, rel=0.02)
    assert np.quantile(inputs, 0.95) == pytest.approx(4000, rel=0.03)


def test_lognormal_keeps_its_bounds() -> None:
    inputs, outputs = lengths(
        input_tokens={"lognormal": {"median": 1000, "sigma": 2, "min": 500, "max": 2000}},
        output_tokens={"lognormal": {"median": 1, "sigma": 9}},
    )
    assert inputs.min() == 500 and inputs.max() == 2000
    assert (inputs == 2000).mean() == pytest.approx(0.364, abs=0.01)  # 1 - normal cdf of ln 2 / 2
    assert outputs.min() == 1


def test_lognormal_without_bounds_ends_at_the_longest_length_of_all() -> None:
    inputs, _ = lengths(count=1000, input_tokens={"lognormal": {"median": 1e-300, "p95": MAX_TOKENS}})
    assert set(inputs) <= {1, MAX_TOKENS}


def test_uniform_has_every_length_of_its_range_equally_often() -> None:
    _, outputs = lengths(output_tokens={"uniform": {"min": 3, "max": 7}})
    values, counts = np.unique(outputs, return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7]
    assert counts == pytest.approx(np.full(5, COUNT / 5), rel=0.05)


def test_prompts_and_answers_are_independent() -> None:
    distribution = {"lognormal": {"median": 1000, "p95": 3000}}
    inputs, outputs = lengths(input_tokens=distribution, output_tokens=distribution)
    assert abs(np.corrcoef(inputs, outputs)[0, 1]) < 0.02


def test_each_seed_has_lengths_of_its_own_and_always_the_same() -> None:
    distribution = {"uniform": {"min": 1, "max": 10**6}}
    first = lengths(seed=1, count=50, input_tokens=distribution)[0].tolist()
    assert first == lengths(seed=1, count=80, input_tokens=distribution)[0][:50].tolist()
    assert first != lengths(seed=2, count=50, input_tokens=distribution)[0].tolist()


def empirical(column: str, **more: Any) -> dict[str, Any]:
    return {"empirical": {"path": "lengths.csv", "column": column, **more}}


def test_a_column_is_drawn_from_with_replacement(tmp_path: Path) -> None:
    (tmp_path / "lengths.csv").write_text(CSV)
    inputs, _ = lengths(tmp_path, input_tokens=empirical("prompt"))
    values, counts = np.unique(inputs, return_counts=True)
    assert values.tolist() == [100, 200, 300]
    assert counts == pytest.approx(np.full(3, COUNT / 3), rel=0.05)


def test_lengths_of_one_file_come_from_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "lengths.csv").write_text(CSV)
    inputs, outputs = lengths(tmp_path, input_tokens=empirical("prompt"), output_tokens=empirical("answer"))
    assert (inputs == 100 * outputs).all()


def test_a_column_in_order_begins_again_after_its_end(tmp_path: Path) -> None:
    (tmp_path / "lengths.csv").write_text(CSV)
    inputs, outputs = lengths(
        tmp_path,
        count=5,
        input_tokens=empirical("prompt", in_order=True),
        output_tokens=empirical("answer", in_order=True),
    )
    assert inputs.tolist() == [100, 200, 300, 100, 200]
    assert outputs.tolist() == [1, 2, 3, 1, 2]


def test_a_device_is_no_file_of_lengths(tmp_path: Path) -> None:
    column = {"empirical": {"path": "/dev/zero", "column": "a"}}
    with pytest.raises(TraceError, match="/dev/zero: cannot be read: it is a device"):
        lengths(tmp_path, count=5, input_tokens=column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lengths.csv:1: the first line must name the columns; it is empty"),
        ("prompts\n5\n", "lengths.csv:1: column 'prompt': not in the header; did you mean 'prompts'?"),
        ("a;b\n5;6\n", "lengths.csv:1: column 'prompt': not in the header; there are 'a;b'"),
        ("prompt,prompt\n5,6\n", "lengths.csv:1: column 'prompt': there are 2 of that name"),
        ("prompt\n", "lengths.csv: has a header and no rows"),
        (
            "prompt\n5\nx\n",
            "lengths.csv:3: column 'prompt': found 'x'; must be a whole number of tokens from 1",
        ),
        ("a,prompt\n5\n", "lengths.csv:2: column 'prompt': the value is missing; must be a whole number"),
        ("prompt\n\n0\n", "lengths.csv:3: column 'prompt': found '0'; must be"),
        ("prompt\n2.5\n", "lengths.csv:2: column 'prompt': found '2.5'; must be"),
        ("prompt\nnan\n", "lengths.csv:2: column 'prompt': found 'nan'; must be"),
        ("prompt\n1e400\n", "lengths.csv:2: column 'prompt': found '1e400'; must be"),
        ("prompt\n\udcff\n", "lengths.csv: not a text file (byte 7 is not UTF-8)"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "lengths.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TraceError) as caught:
        lengths(tmp_path, count=5, input_tokens=empirical("prompt"))
    assert message in str(caught.value)
