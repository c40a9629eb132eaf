"""The command line: what it prints where, its exit codes, and what it leaves behind."""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dynamo_sim import cli, simulation
from dynamo_sim.cli.progress import RunProgress
from dynamo_sim.errors import ScenarioError, SimulationError, TraceError
from dynamo_sim.report import saving
from dynamo_sim.scenario import Scenario, load_scenario
from tests.helpers import heed_signals

ROOT = Path(__file__).parents[2]

DEMO = """\
name: demo
workload: {kind: synthetic, input_tokens: 100, output_tokens: 4, request_count: 5, arrival_interval_ms: 10}
fleet: {workers: 2}
report: {plots: false, requests_format: csv}
"""


@pytest.fixture(autouse=True)
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in a current folder of its own."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "demo.yaml"
    file.write_text(DEMO, encoding="utf-8")
    return file


def replace_run(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    def run(scenario: Scenario, progress: Any = None) -> Any:
        return action()

    monkeypatch.setattr(simulation, "run", run)


def raising(error: BaseException) -> Callable[[], Any]:
    def action() -> Any:
        raise error

    return action


# ---------------------------------------------------------------- run


def test_run_prints_a_table_and_writes_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml"]) == 0
    printed = capsys.readouterr()
    assert "Request Latency (ms)" in printed.out
    assert printed.out.endswith("Results: results/demo\n")
    assert printed.err == ""
    summary = json.loads(Path("results/demo/summary.json").read_text(encoding="utf-8"))
    assert summary["completed_requests"] == 5
    assert Path("results/demo/requests.csv").exists()


def test_run_writes_one_page_if_asked(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--no-save", "--html", "page.html"]) == 0
    assert capsys.readouterr().out.endswith("Page: page.html\n")
    assert "<html" in Path("page.html").read_text()
    assert cli.main(["run", "demo.yaml", "--quiet", "--no-save", "--html", "."]) == 2
    assert capsys.readouterr().err.startswith("--html .: cannot be written: ")


def test_run_draws_pictures_only_if_asked(demo: Path) -> None:
    assert cli.main(["run", "demo.yaml", "--quiet", "--set", "report.plots=true", "--out", "with"]) == 0
    assert list(Path("with").glob("*.png"))
    assert cli.main(["run", "demo.yaml", "--quiet", "--set", "report.plots=true", "--no-plots"]) == 0
    assert not list(Path("results/demo").glob("*.png"))


def test_json_is_all_that_json_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--json", "--out", "here"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["completed_requests"] == 5
    assert printed.err == ""
    assert Path("here/summary.json").exists()


def test_json_leaves_warnings_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["run", "demo.yaml", "--json", "--no-save", "--set", "fleet.engine.num_gpu_blocks=1"]) == 1
    )
    printed = capsys.readouterr()
    assert json.loads(printed.out)["completed_requests"] == 0
    assert printed.err.startswith("Warning: 5 of 5 requests were rejected: ")


def test_a_saved_scenario_can_be_run_again_and_has_the_same_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["run", "demo.yaml", "--quiet"]) == 0
    assert cli.main(["validate", "results/demo/scenario.yaml"]) == 0
    assert capsys.readouterr().out == "results/demo/scenario.yaml: ok\n"
    assert cli.main(["run", "results/demo/scenario.yaml", "--quiet", "--out", "again"]) == 0
    for path in Path("results/demo").iterdir():
        assert (Path("again") / path.name).read_bytes() == path.read_bytes(), path.name


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_no_save_writes_nothing(tmp_path: Path) -> None:
    assert cli.main(["run", "demo.yaml", "--no-save", "--quiet"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]


def test_set_changes_values(capsys: pytest.CaptureFixture[str]) -> None:
    overrides = ["--set", "workload.request_count=3", "--set", "fleet.workers=1"]
    assert cli.main(["run", "demo.yaml", "--json", "--no-save", *overrides]) == 0
    assert json.loads(capsys.readouterr().out)["completed_requests"] == 3


def test_how_large_a_fleet_that_changes_was_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    steps = "scaling=[{at_ms: 10, workers: 5}, {at_ms: 20, workers: 3}]"
    assert cli.main(["run", "demo.yaml", "--no-save", "--set", steps]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("Fleet: "))
    assert line.startswith("Fleet: 2 to 5 workers, ") and ", 2 changes, " in line
    assert cli.main(["run", "demo.yaml", "--no-save"]) == 0
    assert "Fleet: " not in capsys.readouterr().out


def test_settings_without_effect_are_noted_after_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--no-save", "--set", "fleet.engine.startup_time=3"]) == 0
    assert "Note: fleet.engine.startup_time: the first workers are ready" in capsys.readouterr().out


def test_a_run_that_served_nobody_does_not_look_like_one_that_did(capsys: pytest.CaptureFixture[str]) -> None:
    too_small = ["--set", "fleet.engine.num_gpu_blocks=1"]
    assert cli.main(["run", "demo.yaml", "--no-save", *too_small]) == 1
    assert capsys.readouterr().out == (
        "None of 5 requests got a token: there is nothing to measure.\n"
        "Warning: 5 of 5 requests were rejected: a prompt of 100 tokens is too long for the KV pool of 64 tokens "
        "(num_gpu_blocks 1 x block_size 64)\n"
    )


def test_all_requests_rejected_is_one_exit_code_for_every_engine(capsys: pytest.CaptureFixture[str]) -> None:
    for engine in ("vllm", "trtllm", "sglang"):
        small = ["--set", "fleet.engine.num_gpu_blocks=4", "--set", "fleet.engine.block_size=4"]
        engine_type = ["--set", f"fleet.engine.engine_type={engine}"]
        assert cli.main(["run", "demo.yaml", "--no-save", *small, *engine_type]) == 1
        assert capsys.readouterr().err.strip()


def test_a_figure_beyond_its_limit_ends_with_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "demo.yaml", "--no-save", "--quiet", "--set", "sla.ttft_ms=0"]
    assert cli.main([*command, "--fail-on", "within_sla<0.99"]) == 3
    assert "--fail-on within_sla < 0.99: it is 0" in capsys.readouterr().err
    assert cli.main([*command, "--fail-on", "rejected_requests>0"]) == 0
    assert cli.main([*command, "--fail-on", "within_slo<0.99"]) == 2
    assert "did you mean 'within_sla'?" in capsys.readouterr().err
    assert cli.main(["run", "demo.yaml", "--no-save", "--fail-on", "within_sla<1"]) == 2


def test_results_of_an_earlier_run_are_replaced_and_the_last_line_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["run", "demo.yaml", "--quiet"]) == 0
    assert cli.main(["run", "demo.yaml", "--set", "workload.request_count=2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "Results: results/demo (replaced those of an earlier run)"
    summary = json.loads(Path("results/demo/summary.json").read_text(encoding="utf-8"))
    assert summary["completed_requests"] == 2


# ---------------------------------------------------------------- failures


def test_bad_scenario_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "none.yaml"]) == 2
    assert capsys.readouterr() == ("", "none.yaml: no such file\n")


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_bad_profile_is_named_with_the_file_of_the_scenario(
    command: str, demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.npz").write_bytes(b"no zip")
    demo.write_text(DEMO.replace("workers: 2", "engine: {planner_profile_data: bad.npz}"), encoding="utf-8")
    assert cli.main([command, "demo.yaml"]) == 2
    assert capsys.readouterr().err == (
        f'demo.yaml:3:40: Failed to load planner_profile_data from "{Path("bad.npz").absolute()}": '
        "bad.npz is no npz file\n"
    )


@pytest.mark.parametrize("overrides", ["fleet.workers=3", {"fleet.workers": 3}, [3], 3], ids=repr)
def test_overrides_that_are_no_list_of_texts_are_an_error(overrides: Any) -> None:
    with pytest.raises(ScenarioError, match=r"must be a list of texts like \['fleet.workers=8'\]"):
        load_scenario("demo.yaml", overrides)


def test_an_item_of_a_list_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--set", "scaling.0.workers=3"]) == 2
    assert capsys.readouterr().err == (
        "--set scaling.0.workers=3: scaling.0.workers: scaling is not given, so it has no item 0; give the whole list\n"
    )


def test_an_unknown_key_may_be_part_of_a_known_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "demo.yaml", "--set", "fleet.engine.blok=3"]) == 2
    assert capsys.readouterr().err == (
        "--set fleet.engine.blok=3: fleet.engine.blok: unknown key; did you mean 'block_size'?\n"
    )


def test_bad_trace_is_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_run(monkeypatch, raising(TraceError("missing hash_ids", "trace.jsonl", 7)))
    assert cli.main(["run", "demo.yaml"]) == 2
    assert capsys.readouterr() == ("", "trace.jsonl:7: missing hash_ids\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SimulationError("request 3 never fits"), 1, "the run cannot go on: request 3 never fits\n"),
        (OSError(28, "No space left on device", "x.csv"), 1, "x.csv: No space left on device\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_failed_run_leaves_nothing_behind(
    error: BaseException,
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    replace_run(monkeypatch, raising(error))
    assert cli.main(["run", "demo.yaml"]) == code
    assert capsys.readouterr() == ("", message)
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]


def unusable_file(folder: Path) -> str:
    folder.write_text("mine", encoding="utf-8")
    return "--out out: cannot be written: it is not a folder; choose another --out\n"


def unusable_parent(folder: Path) -> str:
    unusable_file(folder)
    return f"--out out/deep: cannot be written: {folder.absolute()} is not a folder; choose another --out\n"


def unusable_content(folder: Path) -> str:
    folder.mkdir()
    (folder / "scenario.yaml").write_text("mine", encoding="utf-8")
    return "--out out: out/scenario.yaml would be replaced, and is not of an earlier result; choose another --out\n"


def result_of_another_program(folder: Path) -> str:
    folder.mkdir()
    (folder / "meta.json").write_text('{"package": "mine"}', encoding="utf-8")
    return (
        "--out out: out/meta.json would be replaced, and is not of an earlier result; choose another --out\n"
    )


@pytest.mark.parametrize(
    ("prepare", "out"),
    [
        (unusable_file, "out"),
        (unusable_parent, "out/deep"),
        (unusable_content, "out"),
        (result_of_another_program, "out"),
    ],
)
def test_unusable_folder_is_refused_before_the_run(
    prepare: Callable[[Path], str],
    out: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    replace_run(monkeypatch, raising(AssertionError("it ran")))
    message = prepare(Path("out"))
    assert cli.main(["run", "demo.yaml", "--out", out]) == 2
    assert capsys.readouterr().err == message


def test_an_unusable_default_folder_is_refused_with_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    Path("results").mkdir()
    Path("results/demo").write_text("mine", encoding="utf-8")
    assert cli.main(["run", "demo.yaml"]) == 2
    assert capsys.readouterr().err == (
        "results/demo: cannot be written: it is not a folder; choose a folder with --out\n"
    )


def test_a_folder_may_be_named_by_a_way_that_is_not_there(tmp_path: Path) -> None:
    assert cli.main(["run", "demo.yaml", "--quiet", "--out", "a/../b", "--html", "c/../d/page.html"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "d", "demo.yaml"]
    assert Path("b/summary.json").exists() and Path("d/page.html").exists()


def test_a_full_disk_is_told_of_the_folder_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(result: Any, draft: Path, *_: Any) -> None:
        raise OSError(28, "No space left on device", str(draft / "requests.csv"))

    monkeypatch.setattr(saving, "_write", write)
    assert cli.main(["run", "demo.yaml", "--out", "out"]) == 1
    assert capsys.readouterr().err == "out: No space left on device\n"
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]


def test_links_in_a_circle_and_long_names_are_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop").symlink_to("loop")
    assert cli.main(["run", "demo.yaml", "--quiet", "--no-save", "--html", "loop/page.html"]) == 2
    assert capsys.readouterr().err.endswith("loop is not a folder\n")
    name = "a" * 250
    assert cli.main(["run", "demo.yaml", "--quiet", "--out", name, "--html", f"{name}.html"]) == 0
    assert Path(name).is_dir() and Path(f"{name}.html").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_read_only_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o500)
    try:
        assert cli.main(["run", "demo.yaml"]) == 2
    finally:
        tmp_path.chmod(0o700)
    assert "read-only for you" in capsys.readouterr().err


WRONG_ARGUMENTS = {
    ("run",): "dynamo-sim run: the following arguments are required: SCENARIO; see dynamo-sim run --help",
    ("run", "demo.yaml", "--no-save", "--out", "x"): "dynamo-sim run: argument --out: not allowed with "
    "argument --no-save; see dynamo-sim run --help",
    (
        "run",
        "demo.yaml",
        "--fast",
    ): "dynamo-sim run: unrecognized arguments: --fast; see dynamo-sim run --help",
    ("run", "demo.yaml", "--htlm=x.html"): "dynamo-sim run: unrecognized arguments: --htlm=x.html; "
    "did you mean --html?; see dynamo-sim run --help",
    (
        "run",
        "demo.yaml",
        "--se",
        "a=1",
    ): "dynamo-sim run: unrecognized arguments: --se a=1; did you mean --set?; see dynamo-sim run --help",
    (
        "--verison",
    ): "dynamo-sim: unrecognized arguments: --verison; did you mean --version?; see dynamo-sim --help",
    ("validate",): "dynamo-sim validate: the following arguments are required: FILE; "
    "see dynamo-sim validate --help",
}


@pytest.mark.parametrize("arguments", WRONG_ARGUMENTS)
def test_wrong_arguments_give_one_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr() == ("", WRONG_ARGUMENTS[arguments] + "\n")


# ---------------------------------------------------------------- validate, schema, help


def test_validate_checks_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.yaml").write_text(DEMO + "sead: 3\n", encoding="utf-8")
    assert cli.main(["validate", "bad.yaml", "none.yaml", "demo.yaml"]) == 2
    printed = capsys.readouterr()
    assert printed.err == "bad.yaml:5:1: sead: unknown key; did you mean 'seed'?\nnone.yaml: no such file\n"
    assert printed.out == "demo.yaml: ok\n"


def test_validate_of_good_files_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["validate", "demo.yaml", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_schema_is_printed_or_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["title"] == "Scenario"
    assert cli.main(["schema", "--out", "schema.json"]) == 0
    assert Path("schema.json").read_text(encoding="utf-8") == printed
    assert cli.main(["schema", "--out", "deep/schema.json"]) == 0
    assert Path("deep/schema.json").read_text(encoding="utf-8") == printed
    assert cli.main(["schema", "--out", "schema.json/schema.json"]) == 2
    assert capsys.readouterr().err.endswith("schema.json is not a folder\n")
    assert cli.main(["schema", "--out", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()


def test_help_and_version_end_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in cli.COMMANDS)
    assert cli.main(["--version"]) == 0


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    helped = capsys.readouterr().out
    assert cli.main([]) == 0
    assert capsys.readouterr() == (helped, "")
    assert "dynamo-sim run scenarios/quickstart.yaml" in helped


EXAMPLES = [
    *cli.EXAMPLES,
    *(line for module in cli.COMMANDS.values() for line in importlib.import_module(module).EXAMPLES),
]


@pytest.mark.parametrize("line", dict.fromkeys(EXAMPLES))
def test_every_example_of_a_help_works(line: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    function = f'dynamo-sim() {{ {sys.executable} -m dynamo_sim "$@"; }}\n'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", function + line], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    if done.returncode == 3:
        assert "--fail-on" in line and done.stderr.startswith("--fail-on ")
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from dynamo_sim import cli; cli.build_parser(); "
        "print([m for m in ('numpy', 'pandas', 'pydantic', 'rich', 'simpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_run_that_saves_nothing_imports_no_library_of_tables_or_pictures() -> None:
    given = ("workload.request_count=3", "workload.input_tokens=8", "workload.output_tokens=2")
    code = (
        "import sys; from dynamo_sim import cli; "
        "print(cli.main(sys.argv[1:]), "
        "[m for m in ('pandas', 'pyarrow', 'matplotlib', 'scipy') if m in sys.modules], file=sys.stderr)"
    )
    overrides = [word for setting in given for word in ("--set", setting)]
    command = [
        sys.executable,
        "-c",
        code,
        "run",
        "scenarios/quickstart.yaml",
        "--json",
        "--no-save",
        *overrides,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.endswith("0 []\n")


# ---------------------------------------------------------------- as a process


def start(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)  # buffered output is what meets a full disk only at the end
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    options.setdefault("preexec_fn", heed_signals)
    return subprocess.Popen([sys.executable, *arguments], text=True, env=environment, **options)


SLOW_RUN = """
import sys, time
from dynamo_sim import cli, simulation

def run(scenario):
    print("running", file=sys.__stdout__, flush=True)  # what runs prints to standard error
    time.sleep(60)

simulation.run = run
sys.exit(cli.main(["run", "demo.yaml"]))
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signal_ends_a_run_without_traceback_and_leftovers(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    process = start("-c", SLOW_RUN)
    assert process.stdout is not None and process.stdout.readline() == "running\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err and out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]


SLOW_SAVE = """
import sys, time
from dynamo_sim import cli
from dynamo_sim.report import saving

def write(*what):
    print("writing", flush=True)
    time.sleep(60)

saving._write = write
sys.exit(cli.main(["run", "demo.yaml"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_results_are_written_leaves_no_draft(number: signal.Signals) -> None:
    process = start("-c", SLOW_SAVE)
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert list(Path("results").iterdir()) == []


UNDER_NOHUP = """
import signal, sys
from dynamo_sim import cli, simulation
from dynamo_sim.report import saving
from dynamo_sim.errors import SimulationError

def run(scenario):
    print("running", file=sys.__stdout__, flush=True)  # what runs prints to standard error
    sys.stdin.readline()
    raise SimulationError("the end")

signal.signal(signal.SIGHUP, signal.SIG_IGN)
simulation.run = run
sys.exit(cli.main(["run", "demo.yaml"]))
"""


def test_a_run_under_nohup_outlives_its_terminal() -> None:
    process = start("-c", UNDER_NOHUP, stdin=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate("go on\n", timeout=60)
    assert (process.returncode, err) == (1, "the run cannot go on: the end\n")


OUTPUTS = (
    ("schema",),
    ("run", "demo.yaml", "--no-save"),
    ("run", "demo.yaml", "--no-save", "--json"),
    ("validate", "demo.yaml"),
    ("--help",),
    ("--version",),
)


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_closed_pipe_is_no_traceback(arguments: tuple[str, ...]) -> None:
    process = start("-m", "dynamo_sim", *arguments)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_output_that_cannot_be_written_is_one_line(arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        process = start("-m", "dynamo_sim", *arguments, stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "output: No space left on device\n")


def test_streams_that_the_shell_closed_are_not_missed() -> None:
    command = f"{sys.executable} -m dynamo_sim run demo.yaml >&- 2>&-"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(["sh", "-c", command], env=environment, timeout=60).returncode == 0
    assert Path("results/demo/summary.json").exists()


# ---------------------------------------------------------------- progress


def test_progress_tells_time_requests_and_speed() -> None:
    scenario = Scenario.from_dict(
        {
            "name": "demo",
            "workload": {
                "kind": "synthetic",
                "input_tokens": 8,
                "output_tokens": 2,
                "request_count": 500,
                "turns_per_session": 4,
            },
        }
    )
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with RunProgress(scenario, "demo", console) as progress:
        progress.expect(2000)
        progress.update(61_500.0, 1234)
        status = progress.status(61_500.0, 1234)
    assert status.startswith("61.5 s simulated, 1,234 of 2,000 requests, ")
    assert status.endswith("x real time")
    assert "62% 61.5 s simulated" in screen.getvalue()


def test_progress_of_a_run_that_is_cut_follows_the_time() -> None:
    trace = {"kind": "trace", "records": [{"timestamp": 0, "hash_ids": [1], "output_length": 2}]}
    scenario = Scenario.from_dict({"name": "demo", "workload": trace, "limits": {"max_sim_time_ms": 1000.0}})
    progress = RunProgress(scenario, "demo")
    progress.expect(400)
    assert progress.share(now_ms=250.0, requests_ended=40) == 0.25
    assert progress.share(now_ms=250.0, requests_ended=200) == 0.5
    assert progress.share(now_ms=2000.0, requests_ended=200) == 1.0


@pytest.mark.parametrize(
    ("share", "elapsed_s", "text"),
    [(0.0, 9.0, ""), (0.5, 0.5, ""), (0.5, 65.0, ", 1:05 left"), (0.01, 100.0, ", 2:45:00 left")],
)
def test_the_time_left_is_told_after_a_second(share: float, elapsed_s: float, text: str) -> None:
    assert RunProgress.left(share, elapsed_s) == text


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_says_how_many_requests_it_expects(workers: int) -> None:
    scenario = load_scenario("demo.yaml", [f"fleet.workers={workers}"])
    expected: list[int] = []
    simulation.run(scenario, on_workload=expected.append)
    assert expected == [5]
