#!/usr/bin/env python3
"""What an autoscaler costs: the load decode-4096-256 with and without an HPA that syncs every 15 s.

The HPA may neither add nor remove workers, so that both runs serve the same; prints CPU times in alternation.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.loads import load
from dynamo_sim.scenario.specs import Scenario
from dynamo_sim.simulation import run
from tests.parity.cases import to_scenario

HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "fixed-size"},
    "spec": {
        "minReplicas": 16,
        "maxReplicas": 16,
        "metrics": [
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": "vllm:num_requests_running"},
                    "target": {"type": "AverageValue", "averageValue": "60"},
                },
            }
        ],
    },
}


def cpu_s(scenario: Scenario) -> float:
    begin = time.process_time()
    run(scenario)
    return time.process_time() - begin


def main() -> None:
    without = to_scenario(load("decode-4096-256"))
    scaled = without.with_(autoscaler={"policy": {"manifest": HPA}})
    pairs = [(cpu_s(scaled), cpu_s(without)) for _ in range(5)]
    ratio = statistics.median(left / right for left, right in pairs)
    for left, right in pairs:
        print(f"with an HPA {left:.3f} s, without {right:.3f} s, {left / right:.2f} times")
    print(f"median: {ratio:.2f} times")


if __name__ == "__main__":
    main()
