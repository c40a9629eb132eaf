"""From the description of a generated workload to the source that offers it."""

from __future__ import annotations

from array import array

from dynamo_sim.errors import ScenarioError
from dynamo_sim.limits import MAX_REQUESTS
from dynamo_sim.scenario.arrivals import RetimedArrivals
from dynamo_sim.scenario.generated_workload import GeneratedWorkload
from dynamo_sim.workload.arrivals.times import arrival_times_ms
from dynamo_sim.workload.generated_turns import GeneratedTurns
from dynamo_sim.workload.lengths import draw_lengths
from dynamo_sim.workload.loop import Loop
from dynamo_sim.workload.plain_list import CappedList, OpenList
from dynamo_sim.workload.retimed import retimed_source
from dynamo_sim.workload.source import WorkloadSource


def generated_source(spec: GeneratedWorkload, seed: int, loop: Loop) -> WorkloadSource:
    """Build the source of requests that ``spec`` describes.

    Whether the run has a controller makes no difference: arrivals are the same, and a closed loop stays one.

    Args:
        spec: the workload.
        seed: the scenario's seed.
        loop: how requests are offered; a cap is one on requests (of traces with conversations: on those).

    Raises:
        ScenarioError: nothing arrives, too much does, or the parts do not go together.
        TraceError: a trace or CSV file cannot be used.
    """
    for path, problem in spec.loop_conflicts(closed=loop.cap is not None):
        raise ScenarioError(f"workload.{path[0]}: {problem}")
    arrivals = spec.arrivals
    if isinstance(arrivals, RetimedArrivals):
        return retimed_source(spec, arrivals, seed, loop)
    if loop.cap is not None:
        assert spec.request_count is not None
        if spec.request_count > MAX_REQUESTS:
            raise ScenarioError(f"workload.request_count: at most {MAX_REQUESTS:,} are possible in a run")
        return CappedList(_turns(spec, spec.request_count, seed), loop.cap)
    assert arrivals is not None
    times = arrival_times_ms(arrivals, seed, spec.request_count, spec.duration_s, loop.ratio)
    return OpenList(_turns(spec, times.size, seed), array("d", times.tobytes()))


def _turns(spec: GeneratedWorkload, count: int, seed: int) -> GeneratedTurns:
    assert spec.input_tokens is not None and spec.output_tokens is not None
    inputs, outputs = draw_lengths(spec.input_tokens, spec.output_tokens, count, seed)
    return GeneratedTurns(inputs, outputs, spec.shared_prefix_ratio, spec.num_prefix_groups, seed)
