#!/usr/bin/env python3
"""Answer cases in the shared format: `python tests/parity/answer.py CASE.json [CASE.json ...]`.

Prints one JSON object a line, in the order of the arguments: ``{"report": ..., "requests": ..., "ticks": ...}``, or
``{"error": text}`` for a case that has to be refused; files of autoscaling vectors answer ``{"cases": [...]}``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from dynamo_sim.errors import DynamoSimError  # noqa: E402
from dynamo_sim.report.rows import request_rows  # noqa: E402
from dynamo_sim.simulation import PlannerBridge, run  # noqa: E402
from tests.parity.cases import Case, Unsupported, has_ticks, is_workflow, to_scenario  # noqa: E402
from tests.parity.planner import CasePlanner  # noqa: E402


def answer(case: Case, **limits: Any) -> dict[str, Any]:
    """What this simulator answers to a case; ``limits`` are further entries of the scenario's section."""
    if "workload" not in case:
        from tests.parity.autoscaling_vectors import answer as answer_vectors

        return answer_vectors(case)
    try:
        scenario = to_scenario(case, **limits)
        if has_ticks(case):
            planner = CasePlanner(case.get("scaling", []), case.get("poll_ms"))
            result = PlannerBridge(scenario).run(planner)
            return {"report": dict(result.summary.as_reference()), "requests": None, "ticks": planner.ticks}
        result = run(scenario)
    except (DynamoSimError, Unsupported) as error:
        return {"error": str(error)}
    rows = request_rows(result.records) if case["workload"]["kind"] == "trace" else None
    if is_workflow(case):
        rows = []  # the reference writes none for them
    return {"report": dict(result.summary.as_reference()), "requests": rows, "ticks": None}


def main(paths: list[str]) -> int:
    for path in paths:
        try:
            answered = answer(json.loads(Path(path).read_text(encoding="utf-8")))
        except Exception as error:  # a fault of ours in one case must not keep the others from their answers
            print(f"{path}: {type(error).__name__}: {error}", file=sys.stderr)
            answered = {"error": f"internal: {type(error).__name__}: {error}"}
        print(json.dumps(answered), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
