"""`dynamo-sim trace`: facts about a trace."""

from __future__ import annotations

import json
import time

import pytest

from dynamo_sim.cli import build_parser
from dynamo_sim.errors import ScenarioError, TraceError
from dynamo_sim.report.plots.trace import trace_figure
from dynamo_sim.report.trace_facts import inspect_trace
from dynamo_sim.traces.detect import detect_format


def row(*ids, **fields):
    return {"output_length": 2, "hash_ids": list(ids), **fields}


ROWS = [
    row(1, 2, timestamp=5000),
    row(1, 3, timestamp=5000, input_length=7),
    row(1, 2, 4, timestamp=27000, input_length=10),
]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def run(*arguments):
    parsed = build_parser().parse_args(["trace", *map(str, arguments)])
    return parsed.handler(parsed)


def test_facts():
    facts = inspect_trace(ROWS, trace_block_size=4)
    assert facts.rows == 3
    assert list(facts.input_tokens) == [8, 7, 10]
    assert facts.span_ms == 22_000.0
    assert facts.mean_rate_rps == pytest.approx(3 / 22)
    assert facts.peak_rate_rps == 0.2
    assert list(facts.turns) == [1, 1, 1]


def test_repetition_counts_full_blocks_and_leading_ids():
    reuse = inspect_trace(ROWS, trace_block_size=4).reuse
    assert (reuse.seen_blocks, reuse.blocks) == (3, 5)
    assert (reuse.seen_ids, reuse.ids) == (3, 7)
    assert reuse.token_share == 12 / 25
    fine = inspect_trace(ROWS, trace_block_size=4, engine_block_size=2).reuse
    assert (fine.seen_blocks, fine.blocks) == (6, 12)


def test_increments_are_measured_as_whole_conversations():
    rows = [row(1, 2, session_id="a", timestamp=0), row(3, session_id="a")]
    facts = inspect_trace(rows, "mooncake-delta", 4)
    assert list(facts.input_tokens) == [8, 14]
    assert facts.reuse.seen_blocks == 2


def test_planned_answers_can_be_seen_again():
    rows = [row(1, timestamp=0, output_length=4, output_token_ids=[2, 2, 2, 2]), row(1, 2, timestamp=1)]
    assert inspect_trace(rows, "mooncake", 4).reuse.seen_blocks == 2


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (ROWS, "mooncake"),
        ([row(1, session_id="a"), row(1, 2, session_id="a")], "mooncake"),
        ([row(1, session_id="a"), row(2, session_id="a")], "mooncake-delta"),
        ([row(1, request_id="a"), row(1, request_id="b", wait_for=["a"])], "agentic_mooncake"),
        ([{"num_turns": 0}], "applied_compute_agentic"),
        ([{"event": {}}], "dynamo"),
        ([{"schema": "x"}], "dynamo"),
        (["junk", row(1)], "mooncake"),
    ],
)
def test_formats_are_recognised_by_their_rows(rows, name):
    assert detect_format(rows).name == name


def test_the_report_names_units(trace, capsys):
    assert run(trace, "--block-size", 4) == 0
    out = capsys.readouterr().out
    assert "mooncake (recognised by its rows)" in out
    assert "22.000 s" in out
    assert "prompt tokens" in out
    assert "0.6000 of 5 blocks of 4 tokens" in out


def test_json_output(trace, capsys):
    assert run(trace, "--block-size", 4, "--json", "--format", "mooncake") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["requests"] == 3
    assert facts["seen_block_share"] == 0.6
    assert facts["input_tokens"]["max"] == 10


def test_a_picture_is_drawn(trace, tmp_path):
    assert run(trace, "--block-size", 4, "--png", tmp_path / "out.png") == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_drawn_is_one_line(trace, tmp_path):
    with pytest.raises(ScenarioError, match=r"^--png \S+: found the ending 'xyz'; must be one like .png"):
        run(trace, "--png", tmp_path / "out.xyz")
    with pytest.raises(ScenarioError, match=r"^--png \S+: cannot be written: "):
        run(trace, "--png", tmp_path)
    assert run(trace, "--png", tmp_path / "new" / "out.svg") == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.svg"]


def test_the_picture_has_the_style_of_all_pictures(trace):
    figure = trace_figure(inspect_trace(str(trace), trace_block_size=4))
    figure.canvas.draw()
    assert [ax.get_ylabel() for ax in figure.axes] == ["requests/s", "requests", "requests"]
    for ax in figure.axes:
        assert ax.get_title("left") and ax.get_xlabel() and not ax.spines["top"].get_visible()
        assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1 - 1


def test_a_trace_without_times_can_be_drawn_too(tmp_path, capsys):
    path = tmp_path / "loops.jsonl"
    path.write_text(json.dumps({
        "num_turns": 1, "input_prompt_length": 5, "assistant_response_length": [2],
        "tool_call_output_length": [3], "tool_call_latency": [0.1], "final_assistant_response_length": 2,
    }))  # fmt: skip
    assert run(path, "--png", tmp_path / "out.png") == 0
    assert "needs a closed loop" in capsys.readouterr().out


def test_bad_lines_are_listed_when_skipped(trace, capsys):
    trace.write_text(trace.read_text() + "\noops\n" * 7)
    with pytest.raises(TraceError):
        run(trace)
    assert run(trace, "--skip-bad-lines") == 0
    printed = capsys.readouterr()
    assert "7 bad lines skipped" in printed.out
    assert f"skipped {trace}:4: failed to parse" in printed.err
    assert "and 2 more" in printed.err


def test_block_sizes_must_be_positive(trace):
    with pytest.raises(ScenarioError, match="--block-size: found 0"):
        run(trace, "--block-size", 0)


def test_a_trace_of_many_years_has_a_peak_rate_too():
    facts = inspect_trace([row(1, timestamp=0), row(1, timestamp=1), row(1, timestamp=1e22)])
    assert facts.peak_rate_rps == 0.2


@pytest.mark.parametrize("last", [5e-324, 1e-310])
def test_arrivals_at_nearly_one_instant_have_no_rate(last):
    facts = inspect_trace([row(1, timestamp=0), row(1, timestamp=last)])
    assert facts.span_ms == 0.0
    assert facts.mean_rate_rps is facts.peak_rate_rps is None


def test_arrivals_an_endless_time_apart_are_refused():
    with pytest.raises(TraceError, match="longer than a number can say"):
        inspect_trace([row(1, timestamp=-1e308), row(1, timestamp=1e308)])


def test_a_conversation_of_very_many_turns_is_measured_quickly() -> None:
    rows = [
        {"session_id": "s", "input_length": 64, "output_length": 2, "hash_ids": [n], "delay": n and 1}
        for n in range(5000)
    ]
    begin = time.process_time()
    facts = inspect_trace([{**rows[0], "timestamp": 0}, *rows[1:]], "mooncake-delta")
    assert time.process_time() - begin < 2.0
    assert facts.input_tokens.max() == 5000 * 64 + 4999 * 2
    assert 0 < facts.reuse.blocks - facts.reuse.seen_blocks <= facts.input_tokens.max() // 512


def test_an_unknown_format_is_refused_with_the_known_ones(trace):
    with pytest.raises(
        ScenarioError, match=r"--format: found 'monncake'; must be one of .* did you mean 'mooncake'"
    ):
        run(trace, "--format", "monncake")
