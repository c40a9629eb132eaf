"""From pasted text to a policy (`spec 10, 2.1, 3.1, 4.1`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynamo_sim.autoscaling.guard import Bounds
from dynamo_sim.autoscaling.kubernetes.hpa import HpaPolicy, HpaSpec
from dynamo_sim.autoscaling.kubernetes.keda import KedaPolicy, ScaledObjectSpec
from dynamo_sim.autoscaling.kubernetes.kpa import KpaPolicy
from dynamo_sim.autoscaling.kubernetes.manifests.hpa import read_hpa
from dynamo_sim.autoscaling.kubernetes.manifests.keda import read_scaled_object
from dynamo_sim.autoscaling.kubernetes.manifests.kinds import (
    CLOUD_RUN,
    FAMILIES,
    NOT_MODELLED,
    group_of,
    groups_of,
    is_cloud_run,
)
from dynamo_sim.autoscaling.kubernetes.manifests.knative import Settings, read_config, read_knative
from dynamo_sim.autoscaling.kubernetes.manifests.options import ManifestOptions
from dynamo_sim.autoscaling.kubernetes.manifests.section import Findings, Section, unpacked
from dynamo_sim.autoscaling.kubernetes.manifests.yaml_text import Lines, read_documents
from dynamo_sim.autoscaling.policy import Policy
from dynamo_sim.errors import ScenarioError
from dynamo_sim.files.input import read_whole
from dynamo_sim.limits import MAX_YAML_BYTES
from dynamo_sim.scenario.autoscaler.kpa import KpaScaling
from dynamo_sim.text import shown

MAX_OTHERS_REPORTED = 5
"""Documents that are no autoscaler and are reported one by one."""


@dataclass(frozen=True)
class Manifest:
    """One autoscaler of a manifest.

    Attributes:
        kind: ``hpa``, ``keda`` or ``kpa``.
        name: of the manifest.
        spec: what it says.
        warnings: what cannot be honoured, one line each, with its place.
        options: what was said beside it.
    """

    kind: str
    name: str
    spec: HpaSpec | ScaledObjectSpec | KpaScaling
    warnings: tuple[str, ...]
    options: ManifestOptions

    def policy(self) -> Policy | KedaPolicy | KpaPolicy:
        """A new policy that does what the manifest says."""
        if isinstance(self.spec, HpaSpec):
            return HpaPolicy(self.spec, self.options.hpa)
        if isinstance(self.spec, ScaledObjectSpec):
            return KedaPolicy(self.spec, self.options.hpa)
        return KpaPolicy(self.spec)

    @property
    def bounds(self) -> Bounds:
        """Smallest and largest fleet the manifest itself can ask for."""
        spec = self.spec
        if isinstance(spec, HpaSpec):
            return Bounds(spec.min_replicas, spec.max_replicas)
        if isinstance(spec, ScaledObjectSpec):
            keys = spec.keys
            return Bounds(
                keys.min_replicas if keys.idle_replicas is None else keys.idle_replicas, keys.max_replicas
            )
        return Bounds(spec.min_scale, spec.max_scale or None)


def load_manifest(
    source: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    options: ManifestOptions | None = None,
    name: str | None = None,
    called: str | None = None,
) -> Manifest:
    """The autoscaler in a file, a text, or documents already parsed.

    Documents that are no autoscaler (a Deployment, a ServiceMonitor) are passed over with a warning.

    Args:
        source: a path, YAML or JSON text of one or several documents, or the documents.
        options: what the manifest does not say.
        name: which autoscaler, by ``metadata.name``, when there are several.
        called: how messages call the file; None for its path.

    Raises:
        ScenarioError: unreadable, malformed, not supported, or not exactly one autoscaler; one line a problem.
    """
    options = replace(options or ManifestOptions(), used=set())
    lines: dict[int, Lines] = {}
    place, documents = _documents(source, called, lines)
    findings = Findings(file=place, lines=lines)
    candidates: list[tuple[str, str, Section]] = []
    config: Settings = {}
    others: list[tuple[str, Section]] = []
    foreign: list[tuple[str, Section]] = []
    for index, data in enumerate(documents):
        if data is None:
            continue
        section, kind, named = _open(data, index, len(documents), place, findings)
        if kind == "ConfigMap" and named == "config-autoscaler":
            config = read_config(section)
        elif (family := _family(section, kind)) in FAMILIES.values():
            candidates.append((str(family), named, section))
        elif family is not None:
            foreign.append((family, section))
        elif kind:
            others.append((kind, section))
    for why, section in foreign:
        report = section.warn if candidates else section.problem
        report("", f"{_named(section)} {why}")
    findings.refuse()
    _report_others(others, place, findings)
    family, chosen, section = _choose(candidates, name, place, others)
    spec: HpaSpec | ScaledObjectSpec | KpaScaling
    if family == "hpa":
        spec = read_hpa(section, options)
    elif family == "keda":
        spec = read_scaled_object(section, options)
    else:
        spec = read_knative(section, config)
    findings.refuse()
    findings.warnings += options.unused()
    return Manifest(family, chosen, spec, tuple(findings.warnings), options)


def _documents(source: Any, called: str | None, lines: dict[int, Lines]) -> tuple[str, list[Any]]:
    if isinstance(source, Mapping):
        return "manifest", unpacked([source], "manifest")
    if not isinstance(source, str | Path):
        if not isinstance(source, list | tuple):
            raise ScenarioError(f"a manifest is a path, a text or its documents, got {shown(source)}")
        return "manifest", unpacked(source, "manifest")
    place = "manifest"
    text = str(source)
    if isinstance(source, Path) or ("\n" not in text.strip() and not text.lstrip().startswith("{")):
        place = called or text
        try:
            text = read_whole(Path(source).expanduser(), MAX_YAML_BYTES).decode("utf-8")
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ScenarioError(f"{place[:200]}: cannot be read: {reason}") from error
    return place, unpacked(read_documents(text, place, lines), place)


def _open(data: Any, index: int, count: int, place: str, findings: Findings) -> tuple[Section, str, str]:
    where = place if count == 1 else f"{place}, document {index + 1}"
    if not isinstance(data, Mapping):
        findings.problems.append(f"{where}: must be a mapping with kind and spec, got {shown(data, 40)}")
        return Section({}, where, findings), "", ""
    kind = data.get("kind")
    metadata = data.get("metadata")
    called = metadata.get("name") if isinstance(metadata, Mapping) else None
    called = called if isinstance(called, str) else ""
    label = " ".join(part for part in (kind if isinstance(kind, str) else "", called) if part)
    section = Section(data, f"{where} ({label}): " if label else f"{where}: ", findings)
    if not isinstance(kind, str):
        section.problem("kind", "is missing")
        return section, "", called
    return section, kind, called


def _family(section: Section, kind: str) -> str | None:
    """The family of an autoscaler, or why it is none of those that are modelled; None for any other document."""
    version = section.data.get("apiVersion")
    if version is not None and not isinstance(version, str):
        section.problem("apiVersion", f"must be a text, got {shown(version)}")
        return None
    group = group_of(kind, version)
    family = FAMILIES.get((group, kind))
    if family == "kpa" and is_cloud_run(section.data):
        return CLOUD_RUN
    found = family or NOT_MODELLED.get((group, kind))
    known = groups_of(kind)
    if found is None and "Autoscal" in kind and known:
        got = "it is missing" if version is None else f"got {shown(version)}"
        section.problem("apiVersion", f"of a {kind} must be one of {', '.join(known)}; {got}")
    if found is None and kind == "ScaledObject":
        section.problem("apiVersion", f"must be keda.sh/v1alpha1, got {shown(version)}")
    return found


def _named(section: Section) -> str:
    kind = str(section.data["kind"])
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def _report_others(others: list[tuple[str, Section]], place: str, findings: Findings) -> None:
    """Warn about documents that are no autoscaler; where there are many, in one line."""
    if len(others) <= MAX_OTHERS_REPORTED:
        for _, section in others:
            section.warn("", f"{_named(section)} is no autoscaler and is not read")
        return
    counted = ", ".join(f"{count} {kind}" for kind, count in Counter(kind for kind, _ in others).items())
    findings.warnings.append(
        f"{place}: {len(others)} documents are no autoscaler and are not read: {counted}"
    )


def _choose(
    candidates: list[tuple[str, str, Section]],
    name: str | None,
    place: str,
    others: list[tuple[str, Section]],
) -> tuple[str, str, Section]:
    if not candidates:
        there = f"; there is {', '.join(dict.fromkeys(kind for kind, _ in others))}" if others else ""
        raise ScenarioError(
            f"{place}: there is no autoscaler in it, no HorizontalPodAutoscaler, ScaledObject or Knative Service{there}"
        )
    named = [candidate for candidate in candidates if name is None or candidate[1] == name]
    if not named:
        there = ", ".join(repr(called) for _, called, _ in candidates)
        raise ScenarioError(f"{place}: there is no autoscaler named {name!r} in it, only {there}")
    if len(named) > 1:
        there = ", ".join(f"{section.data['kind']} {called!r}" for _, called, section in named)
        advice = "say which by its name" if len({called for _, called, _ in named}) > 1 else "leave one"
        raise ScenarioError(f"{place}: there are {len(named)} autoscalers in it ({there}); {advice}")
    return named[0]
