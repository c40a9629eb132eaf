"""A malformed scenario gives one clear line for each problem, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamo_sim.cli import main
from dynamo_sim.scenario import Scenario
from dynamo_sim.scenario.suggestions import models_of, tags_of

GOOD = """\
name: demo
workload:
  kind: synthetic
  input_tokens: 8
  output_tokens: 2
  request_count: 3
"""

TRACE = """\
name: demo
workload:
  kind: trace
  records:
    - {timestamp: 0, input_length: 8, output_length: 2, hash_ids: [1]}
"""

KINDS = ", ".join(
    repr(tag) for model in models_of(Scenario.model_fields["workload"].annotation) for tag in tags_of(model)
)

ENGINE = GOOD + "fleet:\n  engine:\n"

MALFORMED = {
    "unknown-key": (
        ENGINE + "    blok_size: 4\n",
        "x.yaml:9:5: fleet.engine.blok_size: unknown key; did you mean 'block_size'?",
    ),
    "unknown-key-of-another-section": (
        GOOD + "block_size: 4\n",
        "x.yaml:7:1: block_size: unknown key; 'block_size' belongs in fleet.engine",
    ),
    "unknown-key-of-another-kind": (
        GOOD + "  path: trace.jsonl\n",
        "x.yaml:7:3: workload.path: unknown key; 'path' belongs to kind 'trace'",
    ),
    "unknown-key-like-nothing": (
        GOOD + "sla: {colour: red}\n",
        "x.yaml:7:7: sla.colour: unknown key; known here: ttft_ms, itl_ms, e2e_ms",
    ),
    "unknown-key-that-another-section-has": (
        GOOD + "fleet: {startup_time: 60}\n",
        "x.yaml:7:9: fleet.startup_time: unknown key; 'startup_time' belongs in fleet.engine",
    ),
    "unknown-key-that-is-part-of-one-elsewhere": (
        GOOD + "rate: 3\n",
        "x.yaml:7:1: rate: unknown key; did you mean 'workload.arrivals.rate_rps'?",
    ),
    "word-that-people-use-for-a-section": (
        GOOD + "slo: {ttft_ms: 300}\n",
        "x.yaml:7:1: slo: unknown key; did you mean 'sla'?",
    ),
    "word-that-people-use-for-a-key": (
        GOOD + "fleet: {replicas: 3}\n",
        "x.yaml:7:9: fleet.replicas: unknown key; did you mean 'workers'?",
    ),
    "duration-for-seconds": (
        GOOD + "fleet: {startup: {empirical_s: [1m30s]}}\n",
        "x.yaml:7:33: fleet.startup.empirical_s.0: found '1m30s'; must be a number of seconds; write 90",
    ),
    "duration-for-seconds-of-a-key-without-a-unit": (
        ENGINE + "    startup_time: 2 min\n",
        "x.yaml:9:19: fleet.engine.startup_time: found '2 min'; must be a number of seconds; write 120",
    ),
    "duration-for-milliseconds": (
        TRACE + "limits: {max_sim_time_ms: 1.1s}\n",
        "x.yaml:6:27: limits.max_sim_time_ms: found '1.1s'; must be a number of milliseconds; write 1100",
    ),
    "unknown-section": (
        GOOD + "flete: {workers: 2}\n",
        "x.yaml:7:1: flete: unknown key; did you mean 'fleet'?",
    ),
    "unknown-key-in-list": (
        GOOD + "scaling:\n  - {at_ms: 5, worker: 3}\n",
        "x.yaml:8:16: scaling.0.worker: unknown key; did you mean 'workers'?",
    ),
    "merge-key": (
        GOOD + "sla: {<<: {ttft_ms: 5}}\n",
        "x.yaml:7:7: sla.<<: unknown key; merge keys are not supported, repeat the keys",
    ),
    "missing-key": (
        GOOD.replace("  input_tokens: 8\n", ""),
        "x.yaml:2:1: workload.input_tokens: missing, and has no default",
    ),
    "missing-section": ("name: demo\n", "x.yaml:1:1: workload: missing, and has no default"),
    "missing-kind": (
        GOOD.replace("  kind: synthetic\n", ""),
        f"x.yaml:2:1: workload.kind: missing; must be one of {KINDS}",
    ),
    "unknown-kind": (
        GOOD.replace("synthetic", "synthtic"),
        f"x.yaml:3:9: workload.kind: found 'synthtic'; must be one of {KINDS}; did you mean 'synthetic'?",
    ),
    "section-is-a-number": (GOOD + "fleet: 4\n", "x.yaml:7:8: fleet: found 4; must be a section of keys"),
    "section-is-empty": (
        GOOD + "fleet:\n",
        "x.yaml:7:7: fleet: found null; must be a section of keys; leave it out for its defaults",
    ),
    "list-is-a-section": (
        GOOD + "scaling: {at_ms: 5, workers: 3}\n",
        "x.yaml:7:10: scaling: found a section of keys; must be a list",
    ),
    "too-small": (
        ENGINE + "    num_gpu_blocks: 0\n",
        "x.yaml:9:21: fleet.engine.num_gpu_blocks: found 0; must be at least 1",
    ),
    "too-large": (
        ENGINE + "    aic_nextn: 6\n",
        "x.yaml:9:16: fleet.engine.aic_nextn: found 6; must be at most 5",
    ),
    "fleet-of-a-billion": (
        GOOD + "fleet: {workers: 1000000000}\n",
        "x.yaml:7:18: fleet.workers: found 1000000000; must be at most 100000",
    ),
    "scaling-to-a-billion": (
        GOOD + "scaling: [{at_ms: 1, workers: 1000000000}]\n",
        "x.yaml:7:31: scaling.0.workers: found 1000000000; must be at most 100000",
    ),
    "more-requests-than-memory": (
        GOOD.replace("request_count: 3", "request_count: 1000000000000"),
        "x.yaml:6:18: workload.request_count: found 1000000000000; must be at most 50000000",
    ),
    "more-turns-than-memory": (
        GOOD.replace("request_count: 3", "request_count: 1000\n  turns_per_session: 1000000"),
        "x.yaml:7:22: workload.turns_per_session: found 1000000; with request_count 1000 these are 1000000000 "
        "requests, and at most 50000000 are possible",
    ),
    "prompt-of-a-trillion-tokens": (
        GOOD.replace("input_tokens: 8", "input_tokens: 1000000000000"),
        "x.yaml:4:17: workload.input_tokens: found 1000000000000; must be at most 2147483647",
    ),
    "not-greater-than-zero": (
        GOOD + "  arrival_speedup_ratio: 0\n",
        "x.yaml:7:26: workload.arrival_speedup_ratio: found 0; must be greater than 0",
    ),
    "scientific-count": (
        GOOD.replace("request_count: 3", "request_count: 1e3"),
        "x.yaml:6:18: workload.request_count: found 1000.0; must be a whole number; write 1000",
    ),
    "path-of-nobody": (
        TRACE.partition("  records")[0] + "  path: ~nobody-of-this-name/x\n",
        "x.yaml:4:9: workload.path: found '~nobody-of-this-name/x'; cannot be found: Could not determine "
        "home directory.",
    ),
    "path-without-end": (
        TRACE.partition("  records")[0] + f"  path: {'a' * 5000}\n",
        f"x.yaml:4:9: workload.path: found '{'a' * 56}...; cannot be found: File name too long",
    ),
    "enormous-count": (
        GOOD.replace("request_count: 3", "request_count: 1.0e+300"),
        "x.yaml:6:18: workload.request_count: found 1e+300; must be a whole number",
    ),
    "fractional-count": (
        GOOD + "fleet: {workers: 1.5}\n",
        "x.yaml:7:18: fleet.workers: found 1.5; must be a whole number",
    ),
    "quoted-count": (
        GOOD + "fleet: {workers: '4'}\n",
        "x.yaml:7:18: fleet.workers: found '4'; must be a whole number; remove the quotes",
    ),
    "boolean-count": (
        GOOD + "fleet: {workers: true}\n",
        "x.yaml:7:18: fleet.workers: found true; must be a whole number",
    ),
    "yes-is-no-boolean": (
        ENGINE + "    enable_prefix_caching: yes\n",
        "x.yaml:9:28: fleet.engine.enable_prefix_caching: found 'yes'; must be true or false",
    ),
    "time-of-day": (
        GOOD + "limits: {max_sim_time_ms: 1:30}\n",
        "x.yaml:7:27: limits.max_sim_time_ms: found '1:30'; must be a number",
    ),
    "nan": (
        ENGINE + "    speedup_ratio: .nan\n",
        "x.yaml:9:20: fleet.engine.speedup_ratio: found nan; must be at least 0",
    ),
    "infinite-time": (
        TRACE + "limits: {max_sim_time_ms: .inf}\n",
        "x.yaml:6:27: limits.max_sim_time_ms: found inf; must be a finite number",
    ),
    "unquoted-text": (
        ENGINE + "    aic_nextn: 1\n    aic_nextn_accept_rates: 0.5\n",
        "x.yaml:10:29: fleet.engine.aic_nextn_accept_rates: found 0.5; "
        'must be a text; put it in quotes: "0.5"',
    ),
    "word-out-of-choice": (
        ENGINE + "    engine_type: vlm\n",
        "x.yaml:9:18: fleet.engine.engine_type: found 'vlm'; "
        "must be one of 'vllm', 'sglang', 'trtllm'; did you mean 'vllm'?",
    ),
    "one-choice": (
        ENGINE + "    trtllm: {capacity_scheduler_policy: max}\n",
        "x.yaml:9:41: fleet.engine.trtllm.capacity_scheduler_policy: found 'max'; "
        "must be 'guaranteed_no_evict'",
    ),
    "name-with-slash": (
        GOOD.replace("demo", "a/b"),
        "x.yaml:1:7: name: found 'a/b'; must be letters, digits, spaces and . _ - only, "
        "the first a letter or digit",
    ),
    "block-of-one-token": (
        ENGINE + "    block_size: 1\n",
        "x.yaml:9:17: fleet.engine.block_size: found 1; must be a power of two from 2 to 1024 for vllm "
        "(the nearest is 2), or 0 for its default",
    ),
    "block-of-96-tokens": (
        ENGINE + "    engine_type: trtllm\n    block_size: 96\n",
        "x.yaml:10:17: fleet.engine.block_size: found 96; must be a power of two from 2 to 1024 for trtllm "
        "(the nearest is 64), or 0 for its default",
    ),
    "rates-out-of-range": (
        ENGINE + "    aic_nextn: 1\n    aic_nextn_accept_rates: '0.5,2'\n",
        "x.yaml:10:29: fleet.engine.aic_nextn_accept_rates: found '0.5,2'; "
        "must be numbers from 0 to 1 separated by commas; item 2 is '2'",
    ),
    "rates-without-drafts": (
        ENGINE + "    aic_nextn_accept_rates: '0.5'\n",
        "x.yaml:9:29: fleet.engine.aic_nextn_accept_rates: needs aic_nextn, the number of draft tokens",
    ),
    "two-decode-accelerations": (
        ENGINE + "    aic_nextn: 1\n    decode_speedup_ratio: 2\n",
        "x.yaml:10:27: fleet.engine.decode_speedup_ratio: found 2; must be 1 with aic_nextn",
    ),
    "two-page-sizes": (
        ENGINE + "    engine_type: sglang\n    block_size: 4\n    sglang: {page_size: 8}\n",
        "x.yaml:11:25: fleet.engine.sglang.page_size: found 8; must equal block_size, which is 4",
    ),
    "chunk-of-broken-pages": (
        ENGINE + "    engine_type: sglang\n    block_size: 4\n    sglang: {chunked_prefill_size: 6}\n",
        "x.yaml:11:36: fleet.engine.sglang.chunked_prefill_size: found 6; "
        "must be a multiple of the block size, which is 4",
    ),
    "disk-without-host": (
        ENGINE + "    num_g3_blocks: 6\n",
        "x.yaml:9:20: fleet.engine.num_g3_blocks: needs num_g2_blocks, "
        "because the disk tier is filled from the host tier",
    ),
    "prefill-worker": (
        ENGINE + "    worker_type: prefill\n",
        "x.yaml:9:18: fleet.engine.worker_type: found 'prefill'; "
        "must be 'aggregated' in a fleet that does prefill and decode",
    ),
    "data-parallel": (
        ENGINE + "    dp_size: 2\n",
        "x.yaml:9:14: fleet.engine.dp_size: found 2; must be 1 in a simulation",
    ),
    "kv-router": (
        GOOD + "routing: {mode: kv_router, router_temperature: -1}\n",
        "x.yaml:7:48: routing.router_temperature: found -1; must be at least 0",
    ),
    "router-load-model": (
        GOOD + "routing: {mode: kv_router, router_prefill_load_model: aic}\n",
        "x.yaml:7:55: routing.router_prefill_load_model: found 'aic'; must be none, because the performance "
        "model of aic is not simulated",
    ),
    "no-trace": (
        GOOD.replace("synthetic", "trace")
        .replace("  input_tokens: 8\n  output_tokens: 2\n", "")
        .replace("  request_count: 3\n", ""),
        "x.yaml:2:1: workload.path: missing; a trace needs a path, or its records",
    ),
    "trace-twice": (
        TRACE + "  path: x.yaml\n",
        "x.yaml:5:5: workload.records: cannot be given together with path",
    ),
    "missing-trace": (
        "name: demo\nworkload: {kind: trace, path: none.jsonl}\n",
        "x.yaml:2:31: workload.path: found 'none.jsonl'; no such file: FOLDER/none.jsonl",
    ),
    "trace-is-a-folder": (
        "name: demo\nworkload: {kind: trace, path: .}\n",
        "x.yaml:2:31: workload.path: found '.'; is a folder, not a file: FOLDER",
    ),
    "several-traces": (
        "name: demo\nworkload: {kind: trace, path: [x.yaml, x.yaml]}\n",
        "x.yaml:2:31: workload.path: several files are possible only for format dynamo, not for mooncake",
    ),
    "unknown-format": (
        TRACE + "  format: moncake\n",
        "x.yaml:6:11: workload.format: found 'moncake'; must be one of 'mooncake', 'mooncake-delta', "
        "'agentic_mooncake', 'applied_compute_agentic', 'dynamo', 'table'; did you mean 'mooncake'?",
    ),
    "no-trace-block": (
        TRACE + "  trace_block_size: null\n",
        "x.yaml:6:21: workload.trace_block_size: found null; must be a number of tokens for format mooncake",
    ),
    "cap-on-synthetic": (
        GOOD + "limits: {max_sim_time_ms: 100}\n",
        "x.yaml:7:27: limits.max_sim_time_ms: is possible only for trace workloads; "
        "lower request_count instead",
    ),
    "cap-with-scaling": (
        TRACE + "limits: {max_sim_time_ms: 100}\nscaling: [{at_ms: 5, workers: 2}]\n",
        "x.yaml:6:27: limits.max_sim_time_ms: is not possible in a run with scaling",
    ),
    "workflow-in-closed-loop": (
        TRACE + "  format: agentic_mooncake\nlimits: {concurrency: 2}\n",
        "x.yaml:7:23: limits.concurrency: is not possible for format agentic_mooncake, "
        "whose requests start when others end",
    ),
    "tool-loop-in-open-loop": (
        TRACE + "  format: applied_compute_agentic\n",
        "x.yaml:1:1: limits.concurrency: missing; format applied_compute_agentic needs it, "
        "its sessions have no arrival times",
    ),
    "scaling-with-another-format": (
        TRACE + "  format: mooncake-delta\nscaling: [{at_ms: 5, workers: 2}]\n",
        "x.yaml:6:11: workload.format: found 'mooncake-delta'; must be 'mooncake' or 'table' in a run with scaling",
    ),
    "scaling-twice-at-one-time": (
        GOOD + "scaling:\n  - {at_ms: 5, workers: 2}\n  - {at_ms: 5.0, workers: 3}\n",
        "x.yaml:9:13: scaling.1.at_ms: found 5, the time of scaling.0 too; must differ",
    ),
    "duplicate-key": (
        GOOD + "fleet: {workers: 2}\nfleet: {workers: 3}\n",
        "x.yaml:8:1: fleet: duplicate key; the first is on line 7",
    ),
    "tab": (
        GOOD + "fleet:\n\tworkers: 2\n",
        "x.yaml:8:1: not valid YAML: found a tab; indent with spaces",
    ),
    "open-bracket": (
        GOOD + "fleet: {workers: 2\n",
        "x.yaml:8:1: not valid YAML: expected ',' or '}', but got '<stream end>'",
    ),
    "two-documents": (
        GOOD + "---\n" + GOOD,
        "x.yaml:7:1: not valid YAML: found a second document; a scenario is one document, without ---",
    ),
    "key-is-a-list": (GOOD + "? [1]\n: 2\n", "x.yaml:7:3: found a key that is not a word"),
    "tag": (
        GOOD.replace("demo", "!!python/name:os.system x"),
        "x.yaml:1:7: name: the tag 'tag:yaml.org,2002:python/name:os.system' is not allowed",
    ),
    "contains-itself": (GOOD + "scaling: &a [*a]\n", "x.yaml:7:10: scaling.0: contains itself"),
    "endless-number": (
        GOOD + "seed: " + "9" * 5000 + "\n",
        "x.yaml:7:7: seed: the number is too long",
    ),
    "too-deep": (GOOD + "sla: " + "[" * 5000, "x.yaml: nested too deeply"),
    "empty": ("# nothing\n", "x.yaml: the file is empty; a scenario needs at least name and workload"),
    "not-a-mapping": (
        "- name: demo\n",
        "x.yaml:1:1: not a scenario: the file must be a section of keys like 'name: ...'",
    ),
    "control-character": (
        GOOD + "sla: \x01\n",
        "x.yaml:7: not a text file: it has a character that YAML does not allow",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_scenario_gives_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, message = MALFORMED[name]
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(text, encoding="utf-8")
    assert main(["run", "x.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.err == message.replace("FOLDER", str(tmp_path)) + "\n"
    assert printed.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["x.yaml"]


def test_all_problems_are_listed_in_the_order_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(
        "fleet: {workers: 0}\n" + GOOD + "  turns: 2\nlimits: {concurrency: none}\n", encoding="utf-8"
    )
    assert main(["validate", "x.yaml"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "x.yaml:1:18: fleet.workers: found 0; must be at least 1",
        "x.yaml:8:3: workload.turns: unknown key; did you mean 'turns_per_session'?",
        "x.yaml:9:23: limits.concurrency: found 'none'; must be a whole number",
    ]


UNREADABLE = {
    "none.yaml": "none.yaml: no such file",
    "folder": "folder: is a folder, not a scenario file",
    "binary.yaml": "binary.yaml: not a text file (byte 0 is not UTF-8)",
    "a\0b": "a\\x00b: cannot be read: embedded null byte",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_file_gives_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    assert main(["run", name]) == 2
    assert capsys.readouterr().err == UNREADABLE[name] + "\n"


OVERRIDES = {
    "fleet.worker=2": "--set fleet.worker=2: fleet.worker: unknown key; did you mean 'workers'?",
    "flete.workers=2": "--set flete.workers=2: flete: unknown key; did you mean 'fleet'?",
    "fleet.workers": "--set fleet.workers: must be KEY=VALUE, like fleet.workers=8",
    "fleet.workers=two": "--set fleet.workers=two: fleet.workers: found 'two'; must be a whole number",
    "fleet.workers=": "--set fleet.workers=: fleet.workers: found null; must be a whole number",
    "fleet.workers=[": "--set fleet.workers=[: the value is not YAML",
    "fleet..workers=2": "--set fleet..workers=2: 'fleet..workers': not a dotted key like fleet.workers or "
    "scaling.0.workers",
    "name.x=2": "--set name.x=2: name.x: name is a single value and has no 'x'",
    "scaling.-1.workers=2": "--set scaling.-1.workers=2: 'scaling.-1.workers': items of a list are counted from 0",
    "fleet.workers=!!int two": "--set fleet.workers=!!int two: fleet.workers: found 'two'; must be a whole number",
    "scaling.2.workers=2": "--set scaling.2.workers=2: scaling.2: scaling has 1 item, counted from 0",
    "scaling.workers=2": "--set scaling.workers=2: scaling.workers: scaling is a list; "
    "name its items by position, from 0",
    "limits.max_sim_time_ms=5": "--set limits.max_sim_time_ms=5: limits.max_sim_time_ms: "
    "is possible only for trace workloads; lower request_count instead",
}


@pytest.mark.parametrize("override", OVERRIDES)
def test_bad_override_is_named(
    override: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text(GOOD + "scaling: [{at_ms: 5, workers: 2}]\n", encoding="utf-8")
    assert main(["run", "x.yaml", "--set", override]) == 2
    assert capsys.readouterr().err == OVERRIDES[override] + "\n"


def test_small_file_of_aliases_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 10):
        bomb += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    Path("x.yaml").write_text(bomb, encoding="utf-8")
    assert main(["validate", "x.yaml"]) == 2
    assert "aliases repeat more than 100000 values" in capsys.readouterr().err
