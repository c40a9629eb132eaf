"""The ``behavior`` section of an HPA, also as KEDA passes it on (`spec 10, 2.7`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_sim.autoscaling.kubernetes.hpa.quantity import parse_quantity
from dynamo_sim.autoscaling.kubernetes.manifests.section import Findings, Section
from dynamo_sim.scenario.autoscaler.behavior import (
    MAX_RULE_PERIOD_S,
    MAX_STABILIZATION_S,
    BehaviorSpec,
    DirectionSpec,
    RuleSpec,
)


def parse_behavior(data: Mapping[str, Any]) -> BehaviorSpec:
    """A behaviour; what is not given has the defaults, also of an empty one.

    Raises:
        ScenarioError: it is malformed.
    """
    findings = Findings()
    behavior = read_behavior(Section(data, "behavior", findings))
    findings.refuse()
    return behavior


def read_behavior(section: Section) -> BehaviorSpec:
    """A behaviour; problems go to the section's findings."""
    up, down = section.section("scaleUp"), section.section("scaleDown")
    section.finish()
    return BehaviorSpec(
        scale_up=DirectionSpec() if up is None else _direction(up),
        scale_down=DirectionSpec() if down is None else _direction(down),
    )


def _direction(section: Section) -> DirectionSpec:
    rules = window = tolerance = None
    select: Any = section.text("selectPolicy", "Max", ("Max", "Min", "Disabled"))
    if section.has("policies"):
        rules = tuple(_rule(rule) for rule in section.sections("policies")) or None
        if rules is None:
            section.problem("policies", "must have at least one entry")
    if section.has("stabilizationWindowSeconds"):
        window = section.number("stabilizationWindowSeconds", 0.0, 0)
        if window > MAX_STABILIZATION_S:
            section.problem("stabilizationWindowSeconds", f"must be at most {MAX_STABILIZATION_S}")
            window = None
    if section.has("tolerance"):
        try:
            tolerance = float(parse_quantity(section.get("tolerance")))
        except ValueError as error:
            section.problem("tolerance", str(error))
        else:
            if tolerance < 0:
                section.problem("tolerance", "must be at least 0")
                tolerance = None
    section.finish()
    return DirectionSpec(rules=rules, select=select, stabilization_window_s=window, tolerance=tolerance)


def _rule(section: Section) -> RuleSpec:
    for key in ("type", "value", "periodSeconds"):
        if not section.has(key):
            section.problem(key, "is missing")
    kind: Any = section.text("type", "Pods", ("Pods", "Percent"))
    value, period_s = section.integer("value", 1, 1), section.integer("periodSeconds", 1, 1)
    if period_s > MAX_RULE_PERIOD_S:
        section.problem("periodSeconds", f"must be at most {MAX_RULE_PERIOD_S}")
        period_s = 1
    section.finish()
    return RuleSpec(type=kind, value=value, period_s=period_s)
