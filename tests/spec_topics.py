"""Questions about behaviour that people come with, and where each is answered in specification, code and test.

`tests/spec_index.py` makes the first table of `docs/spec/INDEX.md` of it; `tests/test_spec.py` checks that the code
and the tests are there.
"""

from __future__ import annotations

from typing import NamedTuple


class Topic(NamedTuple):
    """One question.

    Attributes:
        question: in the words of the glossary.
        rule: section of a specification, ``02, 7``.
        code: file below `dynamo_sim/` and what in it decides, ``engine/step.py Step.cut``.
        test: file below `tests/` and a test in it that shows the rule.
    """

    question: str
    rule: str
    code: str
    test: str


VLLM = "engine/vllm/test_scheduler.py"
SGLANG = "engine/sglang/test_scheduler.py"
FLEET = "fleet/test_fleet.py"
STARTUP = "fleet/test_startup_and_drain.py"
SERVING = "serving/test_serving.py"
SOURCES = "workload/test_sources.py"
POOL = "kv/test_block_pool.py"
RADIX = "kv/test_radix_cache.py"
SUMMARY = "report/test_summary.py"
KUBERNETES = "autoscaling/kubernetes"

TOPICS = {
    "The engine: vLLM and TRT-LLM": (
        Topic(
            "Which waiting request is admitted next?",
            "02, 5.3",
            "engine/vllm/scheduling.py PassScheduling._admit",
            f"{VLLM} test_nobody_overtakes_the_head_of_the_queue",
        ),
        Topic(
            "How many free blocks does an admission need? Is there a watermark, or a reserve for the output?",
            "02, 8",
            "engine/vllm/admission.py KnownTokensFit.can_admit",
            f"{VLLM} test_admission_needs_blocks_for_the_known_tokens_and_reserves_none",
        ),
        Topic(
            "When is a request rejected?",
            "02, 8",
            "engine/vllm/admission.py KnownTokensFit.exceeds_pool",
            f"{VLLM} test_a_prompt_that_exceeds_the_pool_is_rejected",
        ),
        Topic(
            "Which running request is the victim of a preemption?",
            "02, 7",
            "engine/vllm/preemption.py Recomputation.preempt",
            f"{VLLM} test_the_victim_of_a_preemption_is_the_latest_or_the_oldest",
        ),
        Topic(
            "Where does a preempted request wait?",
            "02, 7",
            "engine/vllm/queue.py WaitingQueue.return_to_front",
            f"{VLLM} test_a_preempted_request_waits_at_the_head_of_the_queue",
        ),
        Topic(
            "How is the token budget of a pass shared? When is a prompt chunked?",
            "02, 6",
            "engine/vllm/scheduling.py PassScheduling._schedule",
            f"{VLLM} test_a_prompt_is_chunked_to_what_the_budget_leaves",
        ),
        Topic(
            "Which pass gives the first token?",
            "02, 10",
            "engine/vllm/emission.py Emission.emit",
            f"{VLLM} test_the_pass_that_ends_a_prompt_gives_the_first_token",
        ),
        Topic(
            "What does TRT-LLM do differently?",
            "02, 9",
            "engine/vllm/trtllm.py WholeAnswerFits.can_admit",
            f"{VLLM} test_trtllm_sets_all_blocks_aside_and_preempts_nobody",
        ),
        Topic(
            "How many tokens does a pass give with speculative decoding?",
            "04, 6.3",
            "timing/speculative.py BurstSampler.burst",
            "timing/test_speculative.py test_a_burst_is_cut_after_drawing",
        ),
    ),
    "The engine: SGLang": (
        Topic(
            "In which order is the queue served (fifo, lpm)?",
            "05, 7",
            "engine/sglang/queue.py WaitingQueue.sort",
            f"{SGLANG} test_lpm_serves_the_longest_cached_prefix_first",
        ),
        Topic(
            "How much of the output to come is reserved for at an admission?",
            "05, 8",
            "engine/sglang/admission.py admit",
            f"{SGLANG} test_outputs_to_come_are_reserved_for",
        ),
        Topic(
            "How does the new-token ratio fall?",
            "05, 10",
            "engine/sglang/ratio.py NewTokenRatio.lower",
            "engine/sglang/test_batch.py test_the_ratio_falls_to_a_seventh_in_six_hundred_passes_and_starts_anew",
        ),
        Topic(
            "Which running request is retracted?",
            "05, 9",
            "engine/sglang/decode.py Decoding._retract",
            f"{SGLANG} test_the_oldest_of_those_that_have_generated_least_is_retracted",
        ),
    ),
    "The KV cache": (
        Topic(
            "When are two blocks the same?",
            "03, 1",
            "kv/prefix.py PrefixInterner.blocks",
            "kv/test_prefix.py test_names_are_equal_exactly_where_the_tokens_are",
        ),
        Topic(
            "Which block is evicted first?",
            "03, 6",
            "kv/block_pool.py BlockPool.evict",
            f"{POOL} test_released_blocks_stay_cached_until_they_are_evicted_last_block_first",
        ),
        Topic(
            "What happens when there are too few blocks for a request?",
            "03, 4",
            "kv/block_pool.py BlockPool.take",
            f"{POOL} test_taking_is_all_or_nothing",
        ),
        Topic(
            "What does the radix tree evict, and what stays?",
            "05, 4",
            "kv/radix_cache.py RadixCache.evict",
            f"{RADIX} test_what_somebody_uses_stays",
        ),
        Topic(
            "How long is a match in the radix tree?",
            "05, 4",
            "kv/radix_cache.py RadixCache.match",
            f"{RADIX} test_a_match_is_as_long_as_the_common_beginning_in_whole_pages",
        ),
    ),
    "Durations": (
        Topic(
            "How long does a pass take without a profile?",
            "04, 3",
            "timing/polynomial.py PolynomialTiming.decode_ms",
            "timing/test_durations.py test_worked_examples_of_the_polynomial",
        ),
        Topic(
            "To what is a duration rounded?",
            "04, 1",
            "timing/durations.py whole_ns",
            "timing/test_durations.py test_exact_halves_go_to_the_even_neighbour",
        ),
        Topic(
            "What is a duration outside of the measured range of a profile?",
            "04, 4",
            "timing/profile.py _segment",
            "timing/test_profile.py test_outside_the_last_segment_goes_on_but_not_below_zero_or_one",
        ),
    ),
    "The fleet and the clock": (
        Topic(
            "In which order do things happen that fall on one instant?",
            "01, 6.1",
            "serving/instant.py RoundStep",
            f"{SERVING} test_a_pass_has_ended_before_those_arrive_who_come_at_its_end",
        ),
        Topic(
            "Which idle worker starts its pass first?",
            "01, 3",
            "fleet/fleet.py Fleet.drive_ready",
            f"{FLEET} test_driving_starts_the_idle_worker_with_the_lowest_id",
        ),
        Topic(
            "Which starting workers does a scale-in cancel?",
            "01, 3",
            "fleet/fleet.py Fleet.apply_target_count",
            f"{FLEET} test_scale_down_cancels_pending_startups_first_newest_first",
        ),
        Topic(
            "Which active workers does a scale-in drain?",
            "01, 3",
            "fleet/fleet.py Fleet.apply_target_count",
            f"{FLEET} test_scale_down_marks_active_workers_only_for_the_rest_highest_first",
        ),
        Topic(
            "When is a draining worker removed? Can it be taken back?",
            "01, 3",
            "fleet/fleet.py Fleet.try_remove_drained",
            f"{FLEET} test_draining_workers_are_not_taken_back",
        ),
        Topic(
            "What becomes of the requests of a worker at the end of its drain grace?",
            "10, 10",
            "fleet/fleet.py Fleet.kill",
            f"{STARTUP} test_a_killed_worker_s_requests_fail_and_all_others_end",
        ),
        Topic(
            "How long does a startup take?",
            "10, 9",
            "fleet/startup.py startup_durations",
            f"{STARTUP} test_every_worker_draws_its_own_duration",
        ),
        Topic(
            "Which worker gets a request (round robin)?",
            "01, 8",
            "routing/round_robin.py RoundRobin.pick",
            "routing/test_round_robin.py test_the_cursor_counts_places_not_ids",
        ),
        Topic(
            "When is a planner asked, and what comes before its tick?",
            "01, 10",
            "serving/aggregated.py AggregatedServing._tick",
            f"{SERVING} test_a_tick_at_an_arrival_lets_nobody_overtake_those_who_came_before",
        ),
        Topic(
            "What are worker-seconds?",
            "01, 12",
            "fleet/collector.py Collector.worker_time_until",
            "properties/test_runs.py test_lifespans_fleet_counts_and_worker_seconds_agree",
        ),
    ),
    "The workload": (
        Topic(
            "When does a client of a closed loop send its next request?",
            "08, 9",
            "workload/plain_list.py CappedList.take_due",
            f"{SOURCES} test_a_cap_on_requests_counts_those_in_the_system",
        ),
        Topic(
            "When does the next turn of a conversation arrive?",
            "08, 6",
            "workload/sessions.py SessionDriver.ended",
            f"{SOURCES} test_a_turn_follows_the_end_of_the_one_before",
        ),
        Topic(
            "What is the pause of a turn that has a timestamp and no delay?",
            "08, 5",
            "traces/mooncake.py _Reader._delay",
            "traces/test_mooncake.py test_inferred_delays",
        ),
        Topic(
            "What does the arrival speed-up divide?",
            "08, 3",
            "workload/speedup.py sped_up",
            "traces/test_mooncake.py test_times_are_shifted_then_divided",
        ),
        Topic(
            "Which tokens are in the prompt of a trace?",
            "08, 4",
            "workload/content.py runs_of_ids",
            "kv/test_prefix.py test_trace_blocks_and_engine_blocks_need_no_common_multiple",
        ),
    ),
    "Results": (
        Topic(
            "How is a percentile computed?",
            "09, 3",
            "records/percentiles.py nearest_rank",
            "records/test_percentiles.py test_the_median_of_two_values_is_the_larger",
        ),
        Topic(
            "Which requests count for goodput?",
            "09, 4",
            "report/summary.py _goodput",
            f"{SUMMARY} test_goodput_divides_by_the_requested_length",
        ),
        Topic(
            "How many prompt tokens of a request count as reused?",
            "02, 13",
            "report/summary.py summarise",
            f"{SUMMARY} test_reuse_is_the_largest_and_the_first_of_any_admission",
        ),
        Topic(
            "What becomes of requests at the time cap?",
            "09, 6",
            "serving/aggregated.py AggregatedServing._stop_at_cap",
            "report/test_unserved.py test_requests_cut_by_the_time_cap_are_counted",
        ),
    ),
    "Autoscaling": (
        Topic(
            "What does a controller see of a worker, and how old is it?",
            "10, 8.1",
            "autoscaling/metrics/pipeline.py MetricsPipeline.view",
            "autoscaling/metrics/test_pipeline.py test_a_controller_sees_the_last_scrape_not_the_truth",
        ),
        Topic(
            "In which order do bounds and the GPU budget apply to a decision?",
            "10, 1.5",
            "autoscaling/guard.py Guarded.decide",
            "autoscaling/test_guard.py test_bounds_apply_after_the_policy_and_the_budget_last",
        ),
        Topic(
            "How many replicas does one metric of an HPA ask for?",
            "10, 2.4",
            "autoscaling/kubernetes/hpa/replicas.py per_pod_replicas",
            f"{KUBERNETES}/test_hpa.py test_starting_workers_damp_a_scale_up",
        ),
        Topic(
            "What does the stabilisation window of an HPA hold back?",
            "10, 2.6",
            "autoscaling/kubernetes/hpa/stabilise.py stabilise_with_behavior",
            f"{KUBERNETES}/test_hpa.py test_what_a_stabilisation_window_holds_is_reported_in_plain_words",
        ),
        Topic(
            "When does KEDA scale to zero?",
            "10, 3.3",
            "autoscaling/kubernetes/keda/operator.py operator_target",
            f"{KUBERNETES}/test_keda.py test_the_drop_to_zero_comes_from_any_size_past_the_down_policy",
        ),
        Topic(
            "When does Knative's autoscaler panic, and when does it stop?",
            "10, 4.3",
            "autoscaling/kubernetes/kpa/decider.py Decider.tick",
            f"{KUBERNETES}/test_kpa.py test_panic_never_falls_and_ends_a_window_after_the_last_surge",
        ),
    ),
}
"""Topics by part; every part is a group of rows."""
