"""`dynamo-sim compare`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dynamo_sim.cli import main
from dynamo_sim.cli.variants import Variant, refuse_equal_runs, variants
from dynamo_sim.errors import ScenarioError
from dynamo_sim.report.result import RunResult
from dynamo_sim.scenario import Scenario
from dynamo_sim.text import cut

SCENARIO = """
name: small
workload: {kind: synthetic, input_tokens: 32, output_tokens: 4, request_count: 20, arrival_interval_ms: 5}
fleet: {workers: 1}
"""

TINY_POOL = "fleet.engine.num_gpu_blocks=1"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return str(path)


def test_every_value_gets_a_column(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", scenario, "--vary", "fleet.workers=1,2"]) == 0
    out = capsys.readouterr().out
    assert "workers=1" in out and "workers=2" in out and "TTFT p99 (ms)" in out
    assert "within the SLA" not in out


def test_several_variations_are_combined(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--vary", "fleet.workers=1,2", "--vary", "fleet.engine.engine_type=vllm,trtllm,sglang"]
    assert main(["compare", scenario, *arguments, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)
    assert [answer["variant"] for answer in answers][:2] == [
        "workers=1 engine_type=vllm",
        "workers=1 engine_type=trtllm",
    ]
    assert len(answers) == 6 and all(answer["summary"]["completed_requests"] == 20 for answer in answers)


def test_a_run_that_served_nobody_has_no_latency(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "compare",
                scenario,
                "--vary",
                "fleet.engine.num_gpu_blocks=1,64",
                "--set",
                "workload.input_tokens=99",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    cells = {row[1].strip(): row[2].strip() for row in (line.split("│") for line in lines) if len(row) > 3}
    assert cells["completed requests"] == "0" and cells["TTFT p99 (ms)"] == cells["duration (s)"] == "-"
    assert lines[-1].startswith("Warning: num_gpu_blocks=1: 20 of 20 requests were rejected: ")


def test_keys_that_end_alike_are_told_apart(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--vary",
        "fleet.workers=1,2",
        "--vary",
        "scaling.0.workers=3",
        "--set",
        "scaling=[{at_ms: 20}]",
    ]
    assert main(["compare", scenario, *arguments, "--json"]) == 0
    variants = [answer["variant"] for answer in json.loads(capsys.readouterr().out)]
    assert variants == ["fleet.workers=1 scaling.0.workers=3", "fleet.workers=2 scaling.0.workers=3"]


def test_a_quoted_comma_does_not_part_values(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", scenario, "--vary", 'name="a, b",c', "--json"]) == 2
    assert capsys.readouterr().err.startswith("--vary name=\"a, b\": name: found 'a, b'; ")


def test_warnings_go_to_standard_error_beside_json(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["compare", scenario, "--json", "--vary", "workload.input_tokens=32,99", "--set", TINY_POOL])
        == 0
    )
    printed = capsys.readouterr()
    assert [answer["summary"]["completed_requests"] for answer in json.loads(printed.out)] == [20, 0]
    assert printed.err.startswith("Warning: input_tokens=99: 20 of 20 requests were rejected: ")


def test_lists_are_one_value(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", scenario, "--vary", "scaling=[],[{at_ms: 20, workers: 2}]", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vary", "fleet.workers"], "--vary fleet.workers: must be KEY=A,B,..., like fleet.workers=4,6,8"),
        (
            ["--vary", "fleet.worker=1"],
            "--vary fleet.worker=1: fleet.worker: unknown key; did you mean 'workers'?",
        ),
        (
            ["--set", "fleet.worker=1", "--vary", "fleet.workers=1,two"],
            "--set fleet.worker=1: fleet.worker: unknown key; did you mean 'workers'?",
        ),
        (
            ["--vary", "fleet.workers=1,two"],
            "--vary fleet.workers=two: fleet.workers: found 'two'; must be a whole number",
        ),
        (
            ["--vary", "fleet.workers=" + ",".join("1" * 65)],
            "--vary: 65 runs are too many to read side by side; at most 64",
        ),
        (
            ["--vary", "fleet.workers=4,5", "--vary", "fleet.workers=6"],
            "--vary fleet.workers: replaces what --vary fleet.workers gives; give all values of a key in one --vary",
        ),
        (
            ["--set", "fleet.workers=4", "--vary", "fleet={workers: 5},{workers: 6}"],
            "--vary fleet: replaces what --set fleet.workers gives; give all values of a key in one --vary",
        ),
        (["--vary", "fleet.workers=4,5,4"], "--vary fleet.workers: 4 is there twice"),
    ],
)
def test_mistakes_get_one_line(
    scenario: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", scenario, *arguments]) == 2
    assert capsys.readouterr().err.strip() == message


def test_a_profile_that_cannot_be_used_is_found_before_the_first_run(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "bad.npz"
    profile.write_bytes(b"no zip")
    assert main(["compare", scenario, "--vary", f"fleet.engine.planner_profile_data=null,{profile}"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"--vary fleet.engine.planner_profile_data={profile}: "
        f'Failed to load planner_profile_data from "{profile}": bad.npz is no npz file\n'
    )


def cells_of(printed: str) -> dict[str, list[str]]:
    rows = (line.split("│") for line in printed.splitlines())
    return {row[1].strip(): [cell.strip() for cell in row[2:-1]] for row in rows if len(row) > 3}


def test_the_share_of_the_sla_and_the_size_of_a_fleet_that_changes_are_told(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["--set", "sla.ttft_ms=1000000", "--vary", "scaling=[],[{at_ms: 20, workers: 4}]"]
    assert main(["compare", scenario, *changes]) == 0
    cells = cells_of(capsys.readouterr().out)
    assert cells["within the SLA"] == ["20", "20"] and cells["within the SLA (share)"] == ["100.0%", "100.0%"]
    assert cells["peak workers"] == ["1", "4"]
    assert cells["mean workers"][0] == "1.0" and 1.0 < float(cells["mean workers"][1]) < 4.0
    assert main(["compare", scenario, "--vary", "fleet.workers=1,2"]) == 0
    assert "workers" not in "".join(cells_of(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("varied", "names"),
    [
        ("policy={kind: hpa, target: 5},{kind: keda, target: 5}", ["policy=hpa", "policy=keda"]),
        ("policy={kind: hpa, a: 1, b: 2},{kind: hpa, a: 1, b: 3}", ["policy=b: 2", "policy=b: 3"]),
        ("x.manifest=a/hpa.yaml,b/keda.yaml", ["manifest=hpa.yaml", "manifest=keda.yaml"]),
        ("x.manifest=a/hpa.yaml,b/hpa.yaml", ["manifest=a/hpa.yaml", "manifest=b/hpa.yaml"]),
        (
            "arrivals={shape: poisson, rate_rps: 4},null",
            ["arrivals={shape: poisson, rate_rps: 4}", "arrivals=null"],
        ),
    ],
)
def test_names_say_what_differs(varied: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(name="small", with_=lambda **_: None)
    monkeypatch.setattr("dynamo_sim.cli.loading.load_and_build", lambda *_: (nothing, []))
    assert [label for label, *_ in variants(["small.yaml"], [], [varied])] == names


def test_a_variant_that_cannot_run_is_named(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    answers = ["--set", "workload.output_tokens=200", "--set", "fleet.engine.block_size=16"]
    pools = ["--vary", "fleet.engine.num_gpu_blocks=64,4"]
    assert main(["compare", scenario, *answers, *pools]) == 1
    assert "num_gpu_blocks=4: request 0 can never finish" in capsys.readouterr().err


def test_variants_that_differ_only_in_a_key_without_effect_are_refused() -> None:
    load = {"kind": "synthetic", "input_tokens": 10, "output_tokens": 2, "request_count": 3}

    def of(system: str) -> Scenario:
        return Scenario.from_dict(
            {"name": "x", "workload": load, "fleet": {"engine": {"aic_system": system}}}
        )

    with pytest.raises(ScenarioError, match=r"would be the same run\n.*fleet\.engine\.aic_system: only for"):
        refuse_equal_runs([Variant(system, "x.yaml", of(system), {}) for system in ("h100", "h200")])


def test_variants_that_are_written_differently_and_mean_the_same_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\nworkload: {kind: synthetic, input_tokens: 1, output_tokens: 1, request_count: 1}\n"
    )
    assert main(["compare", str(file), "--vary", "fleet.workers=4,04"]) == 2
    assert "would be the same run" in capsys.readouterr().err


def test_scenario_files_that_mean_the_same_run_are_refused(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", scenario, scenario]) == 2
    assert f"compare: {cut(scenario)} and {cut(scenario)} would be the same run" in capsys.readouterr().err
    other = tmp_path / "other.yaml"
    other.write_text(SCENARIO.replace("small", "other") + "seed: 3\nreport: {plots: false}\n")
    assert main(["compare", scenario, str(other)]) == 2
    assert capsys.readouterr().err == (
        "compare: small and other would be the same run\nseed: nothing in this scenario is random\n"
    )


def test_scenarios_of_one_name_are_called_by_their_files(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SCENARIO.replace("workers: 1", "workers: 2"))
    assert main(["compare", scenario, str(other), "--json"]) == 0
    assert [run["variant"] for run in json.loads(capsys.readouterr().out)] == [scenario, str(other)]


def test_a_condition_that_holds_for_a_variant_names_it(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", scenario, "--vary", "workload.output_tokens=4,8", "--set", "sla.e2e_ms=40"]
    assert main([*command, "--fail-on", "mean_output_tokens>7"]) == 3
    assert capsys.readouterr().err == "--fail-on mean_output_tokens > 7: it is 8 (output_tokens=8)\n"
    assert main([*command, "--fail-on", "mean_output_tokens>8"]) == 0
    assert main([*command, "--fail-on", "mean_output_token>8"]) == 2
    assert "did you mean 'mean_output_tokens'?" in capsys.readouterr().err


def test_a_condition_on_a_latency_that_nobody_had_is_not_kept(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rejected = ["--set", TINY_POOL, "--vary", "workload.input_tokens=99,32"]
    assert main(["compare", scenario, *rejected, "--fail-on", "p99_ttft_ms>100000"]) == 3
    assert capsys.readouterr().err == (
        "--fail-on p99_ttft_ms > 100000: there is no such figure, no request was completed (input_tokens=99)\n"
    )


def test_conditions_are_shown_once_or_by_variant(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", scenario, "--vary", "fleet.engine.block_size=16,32,64"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Engine: vllm" in lines and "Routing: round_robin" in lines
    assert "KV pool: 262,144 tokens a worker (16,384 blocks of 16) (block_size=16)" in lines


def test_many_variants_are_rows(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    many = ["--vary", "fleet.workers=1,2,3", "--vary", "workload.input_tokens=16,32,48"]
    assert main(["compare", scenario, *many]) == 0
    out = capsys.readouterr().out
    assert "workers=2 input_tokens=48" in cells_of(out)
    tables = [line for line in out.splitlines() if "│" in line or "┃" in line]
    assert max(map(len, tables)) <= 120
    assert "…" not in out


def test_what_has_been_run_is_shown_when_the_next_run_is_interrupted(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dynamo_sim import simulation

    run = simulation.run

    def only_one_worker(of: Scenario) -> RunResult:
        if of.fleet.workers > 1:
            raise KeyboardInterrupt
        return run(of)

    monkeypatch.setattr(simulation, "run", only_one_worker)
    assert main(["compare", scenario, "--vary", "fleet.workers=1,2,3"]) == 130
    printed = capsys.readouterr()
    assert "workers=1" in printed.out and "workers=2" not in printed.out
    assert printed.out.endswith("Warning: only 1 of 3 runs were done\n")
    assert printed.err == "interrupted\n"
    assert main(["compare", scenario, "--vary", "fleet.workers=1,2,3", "--json"]) == 130
    assert [each["variant"] for each in json.loads(capsys.readouterr().out)] == ["workers=1"]


def test_json_has_what_was_varied_and_the_conditions(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", scenario, "--vary", "fleet.workers=1,2", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert first["varied"] == {"fleet.workers": "1"} and first["scenario"] == scenario
    assert first["conditions"]["engine"] == "vllm" and first["warnings"] == []
    assert first["summary"]["mean_workers"] == 1.0
