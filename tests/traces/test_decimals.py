"""Numbers of traces come out as the reference reads them; the expected values are its own (`spec 08, 3`)."""

from __future__ import annotations

from math import inf, nan

import pytest

from dynamo_sim.errors import TraceError
from dynamo_sim.traces.decimals import as_written, read_decimal
from dynamo_sim.traces.formats import read_trace

ROW = {"output_length": 1, "hash_ids": [1]}


@pytest.mark.parametrize(
    "text", ["0", "-0.5", "1234.5", "27482000.123", "1e3", "1.5E-7", "0.1", "123456789012345.0"]
)
def test_numbers_of_up_to_15_digits_are_the_nearest_float(text):
    assert read_decimal(text) == float(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1234.5678901234567", 1234.567890123457),
        ("-1234.5678901234567", -1234.567890123457),
        ("0.30000000000000004", 0.30000000000000004),
        ("92698235562394674875", 9.269823556239466e19),
        ("57353228912789154995", 5.735322891278916e19),
        ("72333279362457891217", 7.233327936245789e19),
        ("1e-400", 0.0),
        ("0e99999999999", 0.0),
        ("1e-99999999999", 0.0),
        ("1e309", inf),
        ("18e307", inf),
        ("0." + "0" * 400 + "1", 0.0),
    ],
)
def test_longer_numbers_are_a_rounded_significand_scaled_by_a_power_of_ten(text, value):
    assert read_decimal(text) == value


def test_records_in_memory_are_read_as_if_they_had_been_written(tmp_path):
    path = tmp_path / "t"
    path.write_text('{"timestamp": 1234.5678901234567, "output_length": 1, "hash_ids": [1]}')
    inline = read_trace([{**ROW, "timestamp": 1234.5678901234567}])
    assert inline.starts == read_trace(path).starts == [1234.567890123457]


def test_only_floats_are_read_again_wherever_they_stand():
    record = {"a": [1, "x", None], "b": (0.5, [1234.5678901234567]), "c": {"d": 2.5}, "e": [1, 2]}
    assert as_written(record) == {
        "a": [1, "x", None], "b": [0.5, [1234.567890123457]], "c": {"d": 2.5}, "e": [1, 2],
    }  # fmt: skip


@pytest.mark.parametrize("value", [10**400, -(10**309), pytest.param(10**5000, id="10^5000")])
def test_numbers_beyond_all_floats_are_refused_in_few_words(value):
    with pytest.raises(TraceError, match=r"timestamp must be a finite number, found .{1,40}$"):
        read_trace([{**ROW, "timestamp": value}])


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_what_json_cannot_write_is_refused_wherever_it_stands(value):
    with pytest.raises(
        TraceError, match=f"line 2: failed to parse line 2 as JSON: {value} is not a JSON number"
    ):
        read_trace([{**ROW, "timestamp": 0}, {**ROW, "timestamp": 0, "unknown": [{"x": value}]}])
