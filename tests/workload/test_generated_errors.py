"""A malformed generated workload gives one clear line for each problem, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario import Scenario, load_scenario
from dynamo_sim.scenario.schema import scenario_schema
from tests.workload.generated_loads import scenario

HEAD = "name: demo\nworkload:\n  kind: generated\n"
LENGTHS = "  input_tokens: 100\n  output_tokens: 10\n"
COUNT = "  request_count: 3\n"

ARRIVALS = {
    "unknown-shape": (
        "{shape: poison, rate_rps: 3}",
        "7:21: workload.arrivals.shape: found 'poison'; must be one of 'constant', 'poisson', 'gamma', "
        "'piecewise', 'ramp', 'diurnal', 'flash_crowd', 'retimed'; did you mean 'poisson'?",
    ),
    "no-shape": ("{rate_rps: 3}", "7:3: workload.arrivals.shape: missing; must be one of 'constant'"),
    "key-of-another-shape": (
        "{shape: poisson, rate_rps: 3, burstiness: 2}",
        "7:43: workload.arrivals.burstiness: unknown key; 'burstiness' belongs to shape 'gamma', 'piecewise'",
    ),
    "misspelt-key": (
        "{shape: piecewise, steps: [{from: 3, rate_rps: 1}]}",
        "7:41: workload.arrivals.steps.0.from: unknown key; did you mean 'from_s'?",
    ),
    "zero-rate": (
        "{shape: constant, rate_rps: 0}",
        "7:41: workload.arrivals.rate_rps: found 0; must be greater than 0",
    ),
    "no-steps": (
        "{shape: piecewise, steps: []}",
        "7:39: workload.arrivals.steps: must have at least one step with a rate_rps above 0",
    ),
    "steps-out-of-order": (
        "{shape: piecewise, steps: [{from_s: 3, rate_rps: 1}, {from_s: 2, rate_rps: 2}]}",
        "7:75: workload.arrivals.steps.1.from_s: found 2; must be after the step before, at 3",
    ),
    "ramp-of-nothing": (
        "{shape: ramp, from_rps: 0, to_rps: 0, duration_s: 4}",
        "7:48: workload.arrivals.to_rps: must be above 0 where from_rps is 0",
    ),
    "negative-night": (
        "{shape: diurnal, mean_rps: 1, amplitude: 1.5}",
        "7:54: workload.arrivals.amplitude: found 1.5; must be at most 1",
    ),
    "even-bursts": (
        "{shape: diurnal, mean_rps: 1, amplitude: 1, random: false, burstiness: 0.5}",
        "7:84: workload.arrivals.burstiness: is not possible with random: false",
    ),
    "crowd-of-no-length": (
        "{shape: flash_crowd, base_rps: 1, peak_rps: 9, at_s: 4, ramp_s: 0, hold_s: 0, decay_s: 0}",
        "7:88: workload.arrivals.hold_s: must be above 0 where ramp_s and decay_s are 0",
    ),
    "no-trace": (
        "{shape: retimed, path: nope, profile: {shape: poisson, rate_rps: 3}}",
        "7:36: workload.arrivals.path: found 'nope'; no such file:",
    ),
    "profile-is-no-trace": (
        "{shape: retimed, path: x.yaml, profile: {shape: retimed}}",
        "7:61: workload.arrivals.profile.shape: found 'retimed'; must be one of 'constant'",
    ),
    "lengths-of-a-trace": (
        "{shape: retimed, path: x.yaml, profile: {shape: poisson, rate_rps: 3}}",
        "4:17: workload.input_tokens: is not possible with arrivals of shape 'retimed': the trace says it",
    ),
}

TOKENS = {
    "zero": ("0", "4:17: workload.input_tokens: found 0; must be from 1 to 2147483647"),
    "fraction": ("3.5", "4:17: workload.input_tokens: found 3.5; must be a whole number, or a section with"),
    "empty": (
        "{}",
        "4:17: workload.input_tokens: must have one of constant, lognormal, uniform, empirical",
    ),
    "two": (
        "{constant: 3, uniform: {min: 4, max: 5}}",
        "4:40: workload.input_tokens.uniform: cannot be given together with constant",
    ),
    "misspelt": (
        "{lognorml: {median: 4, p95: 6}}",
        "4:18: workload.input_tokens.lognorml: unknown key; did you mean 'lognormal'?",
    ),
    "no-spread": (
        "{lognormal: {median: 4}}",
        "4:18: workload.input_tokens.lognormal.p95: missing; a lognormal needs p95, or sigma",
    ),
    "two-spreads": (
        "{lognormal: {median: 4, p95: 8, sigma: 2}}",
        "4:56: workload.input_tokens.lognormal.sigma: cannot be given together with p95",
    ),
    "p95-below-median": (
        "{lognormal: {median: 4, p95: 3}}",
        "4:46: workload.input_tokens.lognormal.p95: found 3; must be at least the median, which is 4",
    ),
    "median-like-no-prompt": (
        "{lognormal: {median: 1.0e+300, sigma: 1}}",
        "4:38: workload.input_tokens.lognormal.median: found 1e+300; must be at most 2147483647",
    ),
    "reversed-range": (
        "{uniform: {min: 4, max: 3}}",
        "4:41: workload.input_tokens.uniform.max: found 3; must be at least min, which is 4",
    ),
    "no-csv": (
        "{empirical: {path: b.csv, column: x}}",
        "4:36: workload.input_tokens.empirical.path: found 'b.csv'; no such file:",
    ),
}

WHOLE = {
    "endless": (
        LENGTHS + "  arrivals: {shape: poisson, rate_rps: 3}\n",
        "2:1: workload.request_count: missing; give request_count or duration_s, or this load never ends",
    ),
    "no-arrivals": (
        LENGTHS + COUNT,
        "2:1: workload.arrivals: missing; only a closed loop (limits.concurrency) goes without",
    ),
    "longer-than-any-clock": (
        LENGTHS + "  duration_s: 1.7e+308\n  arrivals: {shape: poisson, rate_rps: 3}\n",
        "6:15: workload.duration_s: found 1.7e+308; must be at most 1000000000000",
    ),
    "closed-without-count": (
        LENGTHS + "  duration_s: 3\nlimits: {concurrency: 3}\n",
        "2:1: workload.request_count: missing; a closed loop needs it, whatever the arrivals say",
    ),
    "no-lengths": (
        COUNT + "  arrivals: {shape: poisson, rate_rps: 3}\n",
        "2:1: workload.input_tokens: missing; only arrivals of shape 'retimed' have lengths of their own",
    ),
    "key-of-another-kind": (
        LENGTHS + COUNT + "  arrivals: {shape: poisson, rate_rps: 3}\n  arrival_interval_ms: 3\n",
        "8:3: workload.arrival_interval_ms: unknown key; 'arrival_interval_ms' belongs to kind 'synthetic'",
    ),
}


def problems(folder: Path, text: str) -> tuple[str, ...]:
    file = folder / "x.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(file)
    return tuple(problem.removeprefix(f"{file}:") for problem in caught.value.problems)


@pytest.mark.parametrize("case", ARRIVALS)
def test_bad_arrivals(tmp_path: Path, case: str) -> None:
    arrivals, message = ARRIVALS[case]
    found = problems(tmp_path, HEAD + LENGTHS + COUNT + f"  arrivals: {arrivals}\n")
    assert any(problem.startswith(message) for problem in found), found


@pytest.mark.parametrize("case", TOKENS)
def test_bad_lengths(tmp_path: Path, case: str) -> None:
    tokens, message = TOKENS[case]
    rest = "  output_tokens: 9\n  arrivals: {shape: poisson, rate_rps: 3}\n"
    (found,) = problems(tmp_path, HEAD + f"  input_tokens: {tokens}\n" + rest + COUNT)
    assert found.startswith(message)


@pytest.mark.parametrize("case", WHOLE)
def test_parts_that_do_not_go_together(tmp_path: Path, case: str) -> None:
    text, message = WHOLE[case]
    (found, *_) = problems(tmp_path, HEAD + text)
    assert found.startswith(message)


GOOD = scenario(
    {"shape": "piecewise", "steps": [{"from_s": 0, "rate_rps": 3}]},
    request_count=3,
    input_tokens={"lognormal": {"median": 5, "p95": 9}},
)


def test_a_generated_workload_survives_the_way_through_plain_data() -> None:
    plain = GOOD.to_dict()
    assert plain["workload"]["output_tokens"] == {"constant": 10}
    assert Scenario.from_dict(json.loads(json.dumps(plain))) == GOOD
    assert yaml.safe_load(yaml.safe_dump(plain)) == plain


def test_lengths_and_rates_can_be_changed_in_a_copy() -> None:
    changed = GOOD.with_(
        **{
            "workload.input_tokens": 7,
            "workload.output_tokens.constant": 8,
            "workload.arrivals.steps.0.rate_rps": 9,
        }
    ).to_dict()["workload"]
    assert changed["input_tokens"] == {"constant": 7} and changed["output_tokens"] == {"constant": 8}
    assert changed["arrivals"]["steps"] == [{"from_s": 0, "rate_rps": 9}]


def test_the_schema_knows_numbers_and_sections_as_lengths() -> None:
    validator = jsonschema.Draft202012Validator(scenario_schema())
    good = {
        "name": "demo",
        "workload": {
            "kind": "generated",
            "arrivals": {"shape": "ramp", "from_rps": 1, "to_rps": 2, "duration_s": 3},
            "input_tokens": 5,
            "output_tokens": {"uniform": {"min": 3, "max": 4}},
            "request_count": 5,
        },
    }
    assert validator.is_valid(good)
    for wrong in (0, "5", {}, {"constant": 3, "uniform": {"min": 3, "max": 4}}, {"unifrom": {"min": 3}}):
        assert not validator.is_valid({**good, "workload": {**good["workload"], "input_tokens": wrong}})
