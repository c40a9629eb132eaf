#!/usr/bin/env python3
"""The same load here and in the compiled reference, side by side.

    python benchmarks/compare.py [LOAD ...] [--runs 5] [--trace FILE] [--reference PYTHON]

Runs alternate, each in a process of its own, so that both sides meet the same weather. Printed are the median CPU times
of the run itself (imports apart), the median of the ratios reference/ours pair by pair, peak memory, and whether the
figures agree (a cache-aware router draws between equal costs, and the reference draws anew in every run: by how much
they differ). ``--reference`` names an interpreter that has ``ai-dynamo-runtime==1.3.0`` (default: this one).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.loads import LOADS, TRACE_LOADS  # noqa: E402


def one_run(python: str, side: str, name: str, trace: str | None) -> dict[str, Any]:
    command = [python, str(ROOT / "benchmarks" / "one_run.py"), side, name, *([trace] if trace else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{side} failed on {name}:\n{done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare CPU time with the reference.")
    parser.add_argument("loads", nargs="*", help=f"of: {', '.join([*LOADS, *TRACE_LOADS])}")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trace", help="Mooncake trace for the loads 'conversation...'")
    parser.add_argument("--reference", default=sys.executable, metavar="PYTHON")
    options = parser.parse_args()
    titles = ("ours s", "ref s", "ratio", "min", "max", "us/req", "ours MB", "ref MB")
    widths = (8, 8, 6, 6, 6, 8, 8, 8)
    print(f"{'load':18}", *(f"{t:>{w}}" for t, w in zip(titles, widths, strict=True)), " figures")
    for name in options.loads or list(LOADS):
        pairs = []
        for _ in range(options.runs):
            mine = one_run(sys.executable, "ours", name, options.trace)
            theirs = one_run(options.reference, "reference", name, options.trace)
            pairs.append((mine, theirs))
        ratios = [theirs["cpu_s"] / mine["cpu_s"] for mine, theirs in pairs]
        mine, theirs = pairs[-1]
        apart = max(abs(theirs["figures"][k] / v - 1.0) for k, v in mine["figures"].items())
        ours_s = statistics.median(m["cpu_s"] for m, _ in pairs)
        print(
            f"{name:18} {ours_s:8.3f} {statistics.median(t['cpu_s'] for _, t in pairs):8.3f} "
            f"{statistics.median(ratios):6.2f} {min(ratios):6.2f} {max(ratios):6.2f} "
            f"{ours_s / mine['figures']['num_requests'] * 1e6:8.1f} {mine['peak_mb']:8.0f} {theirs['peak_mb']:8.0f}  "
            f"{'equal' if apart < 1e-9 else f'{apart:.1%} apart'}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
