"""Passes become columns in chunks."""

from __future__ import annotations

import numpy as np
import pytest

from dynamo_sim.engine.pass_columns import columns_of, pass_columns
from tests.report.run_records import toy_run


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_columns_do_not_depend_on_chunks(size: int) -> None:
    steps = toy_run(30).steps
    whole = columns_of(steps)
    *full, rest = [steps[start : start + size] for start in range(0, len(steps), size)]
    chunked = pass_columns([columns_of(part) for part in full], rest)
    for name, values in whole.items():
        assert np.array_equal(values, chunked[name]) and values.dtype == chunked[name].dtype, name


def test_no_passes_are_empty_columns() -> None:
    assert {len(values) for values in pass_columns([], []).values()} == {0}
