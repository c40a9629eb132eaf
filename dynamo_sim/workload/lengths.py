"""Drawing the lengths of prompts and answers."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt

from dynamo_sim.limits import MAX_TOKENS
from dynamo_sim.random_streams import stream
from dynamo_sim.scenario.token_lengths import EmpiricalLengths, LognormalLengths, TokenLengths
from dynamo_sim.workload.csv_column import read_token_column

Lengths = npt.NDArray[np.int32]

NORMAL_P95 = 1.6448536269514722
"""The standard normal distribution is below this with probability 0.95."""

INPUT_STREAM = "workload/input_tokens"
OUTPUT_STREAM = "workload/output_tokens"


def draw_lengths(
    input_tokens: TokenLengths, output_tokens: TokenLengths, count: int, seed: int
) -> tuple[Lengths, Lengths]:
    """Prompt and answer lengths of ``count`` requests.

    Each has its own random stream, except that lengths drawn from one file come from the same rows, so that
    long answers stay with the prompts they belong to.

    Raises:
        TraceError: a CSV file or one of its values cannot be used.
    """
    output_stream = INPUT_STREAM if _same_rows(input_tokens, output_tokens) else OUTPUT_STREAM
    return (
        _draw(input_tokens, count, stream(seed, INPUT_STREAM)),
        _draw(output_tokens, count, stream(seed, output_stream)),
    )


def _same_rows(one: TokenLengths, other: TokenLengths) -> bool:
    if one.empirical is None or other.empirical is None:
        return False
    return one.empirical.path == other.empirical.path


def _draw(lengths: TokenLengths, count: int, random: np.random.Generator) -> Lengths:
    if lengths.lognormal is not None:
        return _lognormal(lengths.lognormal, count, random)
    if lengths.uniform is not None:
        low, high = lengths.uniform.min, lengths.uniform.max
        return random.integers(low, high, count, endpoint=True).astype(np.int32)
    if lengths.empirical is not None:
        return _empirical(lengths.empirical, count, random)
    return np.full(count, lengths.constant, dtype=np.int32)


def _lognormal(lengths: LognormalLengths, count: int, random: np.random.Generator) -> Lengths:
    """exp(ln median + sigma x normal), rounded, moved into [min, max]; sigma = ln(p95 / median) / 1.645."""
    if lengths.sigma is not None:
        sigma = lengths.sigma
    else:
        assert lengths.p95 is not None
        sigma = log(lengths.p95 / lengths.median) / NORMAL_P95
    values = random.standard_normal(count)
    values *= sigma
    values += log(lengths.median)
    with np.errstate(over="ignore"):  # infinite lengths become the longest
        np.exp(values, out=values)
    np.rint(values, out=values)
    return np.clip(values, lengths.min, lengths.max or MAX_TOKENS).astype(np.int32)


def _empirical(lengths: EmpiricalLengths, count: int, random: np.random.Generator) -> Lengths:
    column = read_token_column(lengths.path, lengths.column)
    rows = np.arange(count) if lengths.in_order else random.integers(0, column.size, count)
    return column[rows % column.size]
