"""Opening traces, and what happens to their bad lines (`spec 08, 3`)."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

import pytest
import zstandard

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.report.trace_facts import inspect_trace
from dynamo_sim.traces import lines
from dynamo_sim.traces.formats import format_named, read_trace
from dynamo_sim.traces.lines import TraceLines
from dynamo_sim.traces.turn_table import TurnTable

ROW = {"timestamp": 0, "output_length": 2, "hash_ids": [1, 2]}


def write(path, *lines):
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path, **options):
    with pytest.raises(TraceError) as error:
        read_trace(path, trace_block_size=4, **options)
    return error.value


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst", ".zstd", ".GZ"])
def test_the_suffix_decides_about_decompression(tmp_path, suffix):
    raw = f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n".encode()
    if suffix.lower() == ".gz":
        raw = gzip.compress(raw)
    elif suffix:
        raw = zstandard.compress(raw)
    path = tmp_path / f"trace.jsonl{suffix}"
    path.write_bytes(raw)
    assert [line for line, _ in TraceLines(path)] == [1, 3]


def test_several_zstd_frames_are_one_file(tmp_path):
    path = tmp_path / "trace.zst"
    path.write_bytes(b"".join(zstandard.compress(f"{json.dumps(ROW)}\n".encode()) for _ in range(3)))
    assert len(read_trace(path).turns) == 3


@pytest.mark.parametrize("left", [1, 40, -1])
def test_a_zstd_file_that_is_cut_off_is_refused(tmp_path, left):
    whole = zstandard.compress(
        b"".join(f"{json.dumps({**ROW, 'hash_ids': [i]})}\n".encode() for i in range(99))
    )
    path = tmp_path / "trace.zst"
    path.write_bytes(zstandard.compress(f"{json.dumps(ROW)}\n".encode()) + whole[:left])
    assert "cut off" in str(refusal(path))


def test_a_byte_order_mark_at_the_beginning_is_left_out(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(ROW).encode())
    assert len(read_trace(path).turns) == 1
    path.write_bytes(b"\xef\xbb\xbf\n" + json.dumps(ROW).encode())
    assert [line for line, _ in TraceLines(path)] == [2]


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null"])
def test_devices_are_no_traces(path):
    assert "it is a device" in str(refusal(path))


def test_a_pipe_is_read_like_a_file(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(json.dumps(ROW),))
    writer.start()
    assert len(read_trace(path).turns) == 1
    writer.join()


def test_a_pipe_is_not_read_just_to_guess_its_format(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="say which format it has"):
        inspect_trace(tmp_path / "pipe")


def test_a_line_without_an_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    path = write(tmp_path / "t", ROW, "x" * 101)
    assert "the line has more than 100 bytes" in str(refusal(path, skip_bad_lines=True))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"x": "a\tb"}', "Invalid control character at column 9"),
        ('{"x": "a', "Unterminated string starting at column 7"),
        ("[" * 100_000, "lists or objects are nested too deeply"),
        ('{"x": ' + "1" * 5000 + "}", "a number has thousands of digits"),
        ('{"output_length": ' + "1" * 4000 + ', "hash_ids": []}', "found a number of more than 20 digits"),
        (
            '{"output_length": 1, "hash_ids": [1], "session_id": "\\ud800"}',
            "session_id has half of a surrogate pair",
        ),
        (
            '{"output_length": 2147483648, "hash_ids": [1]}',
            "the answer has 2147483648 tokens; at most 2147483647",
        ),
        (
            '{"output_length": 18446744073709551615, "hash_ids": [1]}',
            "the answer has 18446744073709551615 tokens",
        ),
        (
            '{"output_length": 1, "hash_ids": [1], "delay": 1, "session_id": "' + "a" * 999 + '"}',
            "aaa... (found 1;",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_line_says_in_few_words_what_is_wrong(tmp_path, line, reason):
    error = refusal(write(tmp_path / "t", line))
    assert reason in error.message
    assert len(error.message) < 200


def test_blank_lines_are_skipped_but_count(tmp_path):
    error = refusal(write(tmp_path / "t", "", ROW, "   ", "oops"))
    assert error.line == 4
    assert error.file == str(tmp_path / "t")
    assert str(error).startswith(f"{tmp_path / 't'}:4: failed to parse line 4 as JSON")


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "3",
        json.dumps(ROW) + " x",
        json.dumps(ROW) + json.dumps(ROW),
        json.dumps(ROW)[:-1] + ', "output_length": 2}',
        json.dumps(ROW)[:-1] + ', "output_tokens": 2}',
        json.dumps(ROW)[:-1] + ', "created_time": null}',
        '{"timestamp": NaN, "output_length": 2, "hash_ids": [1]}',
        '{"timestamp": 1e999, "output_length": 2, "hash_ids": [1]}',
        '{"timestamp": "0", "output_length": 2, "hash_ids": [1]}',
        '{"timestamp": 0, "output_length": 2.0, "hash_ids": [1]}',
        '{"timestamp": 0, "output_length": true, "hash_ids": [1]}',
        '{"timestamp": 0, "output_length": "2", "hash_ids": [1]}',
        '{"timestamp": 0, "output_length": -2, "hash_ids": [1]}',
        '{"timestamp": 0, "output_length": 2, "hash_ids": [1.0]}',
        '{"timestamp": 0, "output_length": 2, "hash_ids": [true]}',
        '{"timestamp": 0, "output_length": 2, "hash_ids": [18446744073709551616]}',
        '{"timestamp": 0, "output_length": 1, "hash_ids": [1], "output_token_ids": [4294967296]}',
        '{"timestamp": 0, "output_length": 1, "hash_ids": [1], "priority": 2147483648}',
        '{"timestamp": 0, "output_length": 1, "hash_ids": [1], "strict_priority": -1}',
        '{"timestamp": 0, "output_length": 1, "hash_ids": [1], "session_id": 7}',
        '{"timestamp": 0, "output_length": 1, "hash_ids": [1], "policy_class": 7}',
        '\ufeff{"timestamp": 0, "output_length": 1, "hash_ids": [1]}',
    ],
)
def test_what_is_no_record_is_refused_with_its_line(tmp_path, line):
    error = refusal(write(tmp_path / "t", ROW, line))
    assert error.line == 2
    assert "failed to parse" in str(error)


@pytest.mark.parametrize(
    "line",
    [
        json.dumps(ROW)[:-1]
        + ', "other": 1, "other": 2, "nested": {"output_length": 1, "output_length": 2}}',
        json.dumps({**ROW, "session_id": None, "output_token_ids": None, "delay": None, "priority": None}),
        json.dumps({**ROW, "hash_ids": [0, 2**64 - 1]}),
        json.dumps({**ROW, "priority": -(2**31), "session_id": ""}),
        json.dumps(ROW) + "\r",
    ],
)
def test_what_is_allowed(tmp_path, line):
    assert len(read_trace(write(tmp_path / "t", line), trace_block_size=4).turns) == 1


def test_text_that_is_not_utf_8_is_a_bad_line(tmp_path):
    (tmp_path / "t").write_bytes(b'{"x": "\xff"}\n')
    assert refusal(tmp_path / "t").line == 1


def test_an_empty_file_names_itself(tmp_path):
    file = write(tmp_path / "t", "", "")
    assert str(refusal(file)) == f"{file}: the trace did not contain any requests"


@pytest.mark.parametrize("name", ["missing.jsonl", "missing.gz", "."])
def test_a_file_that_cannot_be_read(tmp_path, name):
    error = refusal(tmp_path / name)
    assert "cannot read the trace" in str(error)
    assert error.line is None


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_damaged_archive(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"this is not compressed")
    assert "cannot read the trace" in str(refusal(path))


def test_bad_lines_can_be_skipped_and_are_listed(tmp_path):
    path = write(
        tmp_path / "t",
        {**ROW, "session_id": "a"},
        "oops",
        {**ROW, "session_id": "a", "delay": -1},
        {**ROW, "session_id": "b", "delay": 3},
        {**ROW, "input_length": 0},
        "",
        {**ROW, "session_id": "a", "delay": 4},
    )
    content = read_trace(path, trace_block_size=4, skip_bad_lines=True)
    assert [skip.line for skip in content.skipped] == [2, 3, 4, 5]
    assert all(skip.file == str(path) and skip.reason for skip in content.skipped)
    assert [list(rows) for rows in content.rows] == [[0, 1]]
    assert list(content.delays) == [0.0, 4.0]


def test_a_trace_of_bad_lines_only_says_so(tmp_path):
    error = refusal(write(tmp_path / "t", "oops", "{}"), skip_bad_lines=True)
    assert "2 bad lines were skipped" in str(error)


def test_inline_records_follow_the_same_rules():
    with pytest.raises(TraceError) as error:
        read_trace([ROW, {**ROW, "output_length": 2.0}], trace_block_size=4)
    assert error.value.line == 2
    assert error.value.file is None
    content = read_trace((ROW, 7, ROW), trace_block_size=4, skip_bad_lines=True)
    assert [skip.line for skip in content.skipped] == [2]
    assert content.names == ["request_1", "request_3"]


def test_names_of_formats():
    assert format_named("mooncake_delta").name == "mooncake-delta"
    assert format_named("agentic-mooncake").name == "agentic_mooncake"
    with pytest.raises(ScenarioError, match="got 'Mooncake'"):
        format_named("Mooncake")


def test_a_block_of_no_tokens_is_refused():
    with pytest.raises(ScenarioError, match="trace_block_size must be greater than 0"):
        read_trace([ROW], trace_block_size=0)


def test_only_recorded_traces_come_in_several_files(tmp_path):
    with pytest.raises(ScenarioError, match="takes one file, got 2"):
        read_trace([tmp_path / "a", tmp_path / "b"])


def test_a_trace_has_no_lines_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 5)
    (tmp_path / "t.jsonl").write_text("\n" * 6)
    with pytest.raises(TraceError, match="the trace has more than 5 lines"):
        list(TraceLines(tmp_path / "t.jsonl"))


def test_a_trace_has_no_ids_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamo_sim.traces.turn_table.MAX_TRACE_IDS", 5)
    table = TurnTable(4)
    table.store_ids(range(5))
    with pytest.raises(TraceError, match="the trace has more than 5 ids of blocks"):
        table.store_ids([1])
