"""What recording and saving passes cost: CPU time beside a run without, and peak memory a request.

    python benchmarks/recording.py [LOAD ...]

Each figure is measured in a process of its own. Pictures are left out: they cost the same for any load.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LOADS = {
    "decode-1024-128": (10_000, 1024, 128, 8, 5.0),
    "requests-10k": (10_000, 256, 64, 8, 12.0),
    "fleet-of-100": (100_000, 256, 64, 100, 1.0),
}
"""Requests, input and output tokens, workers, interval in ms."""


def measure(name: str, passes: bool, save: bool) -> dict[str, float]:
    """Run a load in this process.

    Returns:
        ``run_s`` and ``save_s`` of CPU time, ``peak_mb`` beyond the memory before the run, ``requests``.
    """
    import pandas  # noqa: F401  (imports are no part of a run)
    import pyarrow.parquet  # noqa: F401

    from dynamo_sim import Scenario, run

    requests, inputs, outputs, workers, interval_ms = LOADS[name]
    scenario = Scenario.from_dict(
        {
            "name": name,
            "workload": {
                "kind": "synthetic",
                "input_tokens": inputs,
                "output_tokens": outputs,
                "request_count": requests,
                "arrival_interval_ms": interval_ms,
            },
            "fleet": {"workers": workers},
            "report": {"passes": passes},
        }
    )
    before_mb = _peak_mb()
    started = time.process_time()
    result = run(scenario)
    ran = time.process_time()
    if save:
        with tempfile.TemporaryDirectory() as folder:
            result.save(folder, plots=False)
    saved = time.process_time()
    return {
        "run_s": ran - started,
        "save_s": saved - ran,
        "peak_mb": _peak_mb() - before_mb,
        "requests": requests,
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _in_a_process(*arguments: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main(names: list[str], rounds: int) -> None:
    """Print one line a load."""
    print(f"{'load':16} {'run (s)':>8} {'recording':>10} {'saving':>8} {'kB a request':>13}")
    for name in names:
        pairs = [(_in_a_process(name, False, False), _in_a_process(name, True, True)) for _ in range(rounds)]
        without = median(plain["run_s"] for plain, _ in pairs)
        recording = median(full["run_s"] / plain["run_s"] - 1.0 for plain, full in pairs)
        saving = median(full["save_s"] / full["run_s"] for _, full in pairs)
        memory = pairs[0][1]["peak_mb"] * 1024.0 / pairs[0][1]["requests"]
        print(f"{name:16} {without:8.2f} {recording:10.0%} {saving:8.0%} {memory:13.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"of {', '.join(LOADS)}; all without any")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs per load; medians are shown")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := [name for name in given.loads if name not in LOADS]:
        parser.error(f"no load {', '.join(unknown)}; there are {', '.join(LOADS)}")
    if given.one:
        print(json.dumps(measure(*json.loads(given.one))))
    else:
        main(given.loads or list(LOADS), given.rounds)
