"""The ``behavior`` section of an HPA, also as KEDA passes it on (`spec 10, 2.7`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_sim.autoscaling.kubernetes.hpa.quantity import parse_quantity
from dynamo_sim.autoscaling.kubernetes.hpa.spec import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    HpaBehavior,
    HpaDirection,
    HpaRule,
)
from dynamo_sim.autoscaling.kubernetes.manifests.section import Findings, Section

LONGEST_PERIOD_S = 1800
LONGEST_WINDOW_S = 3600


def parse_behavior(data: Mapping[str, Any]) -> HpaBehavior:
    """A behaviour; what is not given has the defaults, also of an empty one.

    Raises:
        ScenarioError: it is malformed.
    """
    findings = Findings()
    behavior = read_behavior(Section(data, "behavior", findings))
    findings.refuse()
    return behavior


def read_behavior(section: Section) -> HpaBehavior:
    """A behaviour; problems go to the section's findings."""
    up, down = section.section("scaleUp"), section.section("scaleDown")
    section.finish()
    return HpaBehavior(
        DEFAULT_UP if up is None else _direction(up, DEFAULT_UP),
        DEFAULT_DOWN if down is None else _direction(down, DEFAULT_DOWN),
    )


def _direction(section: Section, default: HpaDirection) -> HpaDirection:
    rules = default.rules
    select = section.text("selectPolicy", default.select, ("Max", "Min", "Disabled"))
    if section.has("policies"):
        rules = tuple(_rule(rule) for rule in section.sections("policies"))
        if not rules:
            section.problem("policies", "must have at least one entry")
    window = default.window_s
    if section.has("stabilizationWindowSeconds"):
        window = section.number("stabilizationWindowSeconds", 0.0, 0)
        if window > LONGEST_WINDOW_S:
            section.problem("stabilizationWindowSeconds", f"must be at most {LONGEST_WINDOW_S}")
    tolerance = None
    if section.has("tolerance"):
        try:
            tolerance = float(parse_quantity(section.get("tolerance")))
        except ValueError as error:
            section.problem("tolerance", str(error))
        else:
            if tolerance < 0:
                section.problem("tolerance", "must be at least 0")
    section.finish()
    return HpaDirection(rules, select, window, tolerance)


def _rule(section: Section) -> HpaRule:
    for key in ("type", "value", "periodSeconds"):
        if not section.has(key):
            section.problem(key, "is missing")
    rule = HpaRule(
        section.text("type", "Pods", ("Pods", "Percent")),
        section.integer("value", 1, 1),
        section.integer("periodSeconds", 1, 1),
    )
    if rule.period_s > LONGEST_PERIOD_S:
        section.problem("periodSeconds", f"must be at most {LONGEST_PERIOD_S}")
    section.finish()
    return rule
