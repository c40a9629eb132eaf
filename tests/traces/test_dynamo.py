"""`dynamo`: recorded requests, with and without agents (`spec 08, 8`)."""

from __future__ import annotations

import gzip
import json

import pytest

from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.traces.formats import read_trace


def request(name, start, *hashes, session=None, parent=None, total=None, at=None, length=None, **fields):
    record = {
        "schema": "dynamo.request.trace.v1",
        "event_type": "request_end",
        "event_time_unix_ms": start + 100 if at is None else at,
        "request": {
            "request_id": name,
            "request_received_ms": start,
            "output_tokens": 2,
            "replay": {
                "trace_block_size": 4,
                "input_length": len(hashes or (1, 2)) * 4 if length is None else length,
                "input_sequence_hashes": list(hashes or (1, 2)),
            },
            **fields,
        },
    }
    if total is not None:
        record["request"]["total_time_ms"] = total
    if session is not None:
        record["agent_context"] = {"session_id": session, "parent_session_id": parent}
    return record


def tool(session, source, child=None, consumer=None, mode="blocking", kind="tool_end"):
    claude = {"source_request_id": source, "consumer_request_id": consumer, "child_session_id": child,
              "execution_mode": mode}  # fmt: skip
    return {
        "schema": "dynamo.request.trace.v1",
        "event_type": kind,
        "event_time_unix_ms": 1,
        "agent_context": {"session_id": session},
        "tool": {"tool_call_id": "t", "tool_class": "x", "claude": claude},
    }


def read(*records, block=None, **options):
    return read_trace(list(records), "dynamo", block, **options)


def refusal(*records):
    with pytest.raises(TraceError) as error:
        read(*records)
    return str(error.value)


def dependencies(*records):
    """Which names each request waits for, and its pause; requests are told apart by their input hashes."""
    workflow = read(*records)
    names = [r["request"]["request_id"] for r in sorted(
        (r for r in records if r["event_type"] == "request_end"),
        key=lambda r: (r["request"]["request_received_ms"], _end(r), r["request"]["request_id"]),
    )]  # fmt: skip
    return {
        name: ({names[row] for row in waits}, pause)
        for name, waits, pause in zip(names, workflow.waits_for, workflow.wait_ms, strict=True)
    }


def _end(record):
    start = record["request"]["request_received_ms"]
    total = record["request"].get("total_time_ms")
    return start + (max(0, record["event_time_unix_ms"] - start) if total is None else max(0, round(total)))


def test_requests_without_agents_are_sorted_and_their_hashes_renamed():
    content = read(
        {"event": request("b", 1000, 9, 2**63)},
        request("a", 1000, 5),
        request("c", 1000, 7, total=5.0),
        request("d", 1200, 9, 5),
    )
    assert content.single
    assert content.starts == [0.0, 0.0, 0.0, 200.0]
    assert [content.turns.ids(row) for row in range(4)] == [[0], [1], [2, 3], [2, 1]]
    assert content.names == ["request_1", "request_2", "request_3", "request_4"]


def test_lines_that_are_no_objects_do_not_count():
    assert len(read(3, [1], {"event": None}, {"event": 3}, request("a", 0)).turns) == 1
    assert "no request_end records" in refusal(3)


def test_the_block_size_comes_from_the_records():
    assert read(request("a", 0)).turns.block_tokens == 4
    assert read(request("a", 0), block=4).turns.block_tokens == 4
    with pytest.raises(ScenarioError, match="8 does not match embedded Dynamo request trace block size 4"):
        read(request("a", 0), block=8)


def test_several_files_are_one_trace(tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz"
    one.write_text(json.dumps(request("b", 5)))
    two.write_bytes(gzip.compress(json.dumps(request("a", 3)).encode()))
    assert read_trace([one, two], "dynamo").starts == [0.0, 2.0]
    two.write_bytes(gzip.compress(("\n" + json.dumps(request("b", 3))).encode()))
    with pytest.raises(TraceError, match="duplicate request_id b") as error:
        read_trace([one, two], "dynamo")
    assert (error.value.file, error.value.line) == (str(two), 2)


def changed(record, value, *path):
    record = json.loads(json.dumps(record))
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return record


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (changed(request("a", 0), "v2", "schema"), "schema must be dynamo.request.trace.v1"),
        (changed(request("a", 0), None, "schema"), "missing field schema"),
        (changed(request("a", 0), "request_start", "event_type"), "only supports request_end/tool_* events"),
        (changed(request("a", 0), -1, "event_time_unix_ms"), "event_time_unix_ms must be a whole number"),
        (changed(request("a", 0), None, "request"), "invalid request_end"),
        (changed(request("a", 0), None, "request", "replay"), "invalid request_end"),
        (changed(request("a", 0), None, "request", "output_tokens"), "invalid request_end"),
        (changed(request("a", 0), None, "request", "request_id"), "missing field request_id"),
        (changed(request("a", 0), [1], "request", "replay", "input_sequence_hashes"), "needs 2"),
        (changed(request("a", 0), 0, "request", "replay", "trace_block_size"), "must be greater than 0"),
        (changed(request("a", 0), {}, "agent_context"), "missing field session_id"),
        (changed(tool("p", "a"), {}, "tool"), "missing field tool_call_id"),
        (changed(tool("p", "a"), {}, "tool", "claude"), "missing field source_request_id"),
        (changed(tool("p", "a"), 7, "tool", "status"), "status must be a text, found 7"),
        (changed(tool("p", "a"), "7", "tool", "duration_ms"), "duration_ms must be a finite number"),
        (changed(tool("p", "a"), -1, "tool", "output_bytes"), "output_bytes must be a whole number"),
    ],
)
def test_errors_of_a_line(record, text):
    assert text in refusal(request("first", 0), record)


def test_errors_of_the_whole():
    assert "duplicate request_id a at line 2" in refusal(request("a", 0), request("a", 1))
    other = changed(request("b", 0, 1), 2, "request", "replay", "trace_block_size")
    other = changed(other, 2, "request", "replay", "input_length")
    assert "mixed replay trace_block_size values are not supported: 4 and 2" in refusal(
        request("a", 0), other
    )
    assert "cannot mix requests" in refusal(request("a", 0), request("b", 1, session="p"))
    assert "must have a positive input_length" in refusal(
        changed(request("a", 0, length=0), [], "request", "replay", "input_sequence_hashes")
    )


def test_the_turns_of_a_session_follow_one_another():
    found = dependencies(request("a", 1000, session="p", total=10), request("b", 1200, session="p"))
    assert found == {"a": (set(), 0.0), "b": ({"a"}, 190.0)}


def test_a_child_starts_after_and_joins_its_parent():
    found = dependencies(
        request("a", 1000, session="p", total=100),
        request("x", 1050, session="c", parent="p", total=250),
        request("b", 1400, session="p", total=100),
        request("y", 1320, session="c", parent="p", total=50),
        request("n", 1405, session="q"),
    )
    assert found["x"] == ({"a"}, 0.0)
    assert found["y"] == ({"x"}, 20.0)
    assert found["b"] == ({"a", "y"}, 30.0)
    assert found["n"] == (set(), 0.0)


FAR = (
    request("a", 1000, session="p", total=1),
    request("b", 1150, session="p", total=1),
    request("x", 5000, session="c", parent="p", total=1),
    request("d", 5500, session="p", total=1),
)


def test_an_ended_tool_says_who_waits_for_a_child():
    assert dependencies(*FAR)["x"] == ({"b"}, 3849.0)
    for kind in ("tool_end", "tool_error"):
        found = dependencies(*FAR, tool("p", "a", child="c", consumer="d", kind=kind))
        assert found["x"] == ({"a"}, 3999.0)
        assert found["d"] == ({"b", "x"}, 499.0)
    found = dependencies(*FAR, tool("p", "a", child="c"))
    assert found["d"] == ({"b"}, 4349.0)  # nobody named: nobody joins


def test_a_tool_that_only_started_says_nothing():
    assert dependencies(*FAR, tool("p", "nobody", child="c", kind="tool_start")) == dependencies(*FAR)


def test_a_child_whose_parent_has_no_requests_starts_by_itself():
    assert dependencies(request("x", 1200, session="c", parent="nobody")) == {"x": (set(), 0.0)}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([tool("p", "a", mode="zz")], "tool t has unsupported execution_mode zz"),
        ([tool("p", "q")], "tool t references unknown request_id q"),
        ([tool("p", "x")], "tool t request x belongs to a different session"),
        ([tool("p", "a", consumer="x")], "tool t request x belongs to a different session"),
        ([tool("p", "a", child="c"), tool("p", "b", child="c")],
         "multiple tool events reference child session c"),
        ([request("o", 1000, session="o"), tool("o", "o", child="c")],
         "source request o is not in parent session p"),
        ([request("z", 9000, session="c", parent="o")],
         "session c has conflicting parent_session_id values: p and o"),
        ([request("z", 9000, session="z", parent="z")], "agentic request dependencies contain a cycle"),
    ],
)  # fmt: skip
def test_errors_of_agents(events, text):
    assert text in refusal(*FAR, *events)
