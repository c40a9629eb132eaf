"""Classes of the cache-aware router's queue, as its policy file describes them (spec 06, 6.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo

from dynamo_sim.errors import ScenarioError
from dynamo_sim.files.input import read_whole
from dynamo_sim.limits import MAX_YAML_BYTES
from dynamo_sim.scenario.base import CheckedSpec, Count, NonNegative, Path, PositiveCount, Spec, repeats
from dynamo_sim.scenario.explain import explain
from dynamo_sim.scenario.files import existing_path
from dynamo_sim.scenario.yaml_source import read_yaml

DEFAULT_BUSY_FRACTION = 16.0
"""Busy threshold of a class that has none, in parts of the workers' token budget."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]


class CacheBucket(Spec):
    """Requests with at least so many prompt tokens that are cached nowhere."""

    min_tokens: Count
    """Fewest tokens; the first bucket begins at 0, and each at more than the one before it."""

    bucket: Name
    """What classes call it."""


class PolicyClass(CheckedSpec):
    """Requests that wait in a queue of their own."""

    name: Name
    """Its name; requests with this `policy_class` wait in it, if it has no family."""

    policy_family: Name | None = None
    """Family, chosen by the `policy_class` of a request; together with cache_bucket."""

    cache_bucket: Name | None = None
    """Bucket; a class has both a family and a bucket, or neither."""

    quantum: PositiveCount
    """Tokens that its turn is worth in the deficit round-robin over the classes."""

    queue_policy: Literal["fcfs", "wspt"] = "fcfs"
    """Order within the class."""

    prefill_busy_threshold: Count | None = None
    """A worker with more booked tokens is busy for this class."""

    prefill_busy_threshold_frac: NonNegative | None = None
    """The same in parts of the workers' token budget; a worker is busy if either says so. Neither = 16.0."""

    request_queue_limit_per_worker: Count | None = None
    """Most waiting requests for each worker; the run fails at the next one. null = no limit."""

    raw_isl_token_queue_limit_per_worker: Count | None = None
    """Most waiting prompt tokens for each worker. null = no limit."""

    cached_token_queue_limit_per_worker: Count | None = None
    """Most waiting prompt tokens that are cached, for each worker. null = no limit."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        for key, other in (("policy_family", "cache_bucket"), ("cache_bucket", "policy_family")):
            if getattr(self, key) is None and getattr(self, other) is not None:
                yield (key,), f"missing; a class has both {other} and {key}, or neither"


Buckets = Annotated[tuple[CacheBucket, ...], Field(strict=False, json_schema_extra={"minItems": 1})]
Classes = Annotated[tuple[PolicyClass, ...], Field(strict=False, json_schema_extra={"minItems": 1})]


class PolicyProfile(CheckedSpec):
    """The classes of a router."""

    default_policy_family: Name
    """Family of requests that name none."""

    uncached_isl_buckets: Buckets
    """Buckets, by the prompt tokens that are cached nowhere."""

    policy_classes: Classes
    """Classes: one for each family and bucket, and any number without either."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        return _profile_conflicts(self.default_policy_family, self.uncached_isl_buckets, self.policy_classes)


class PolicyFile(CheckedSpec):
    """A policy file: a profile, profiles by model name, or both."""

    default_policy_family: Name | None = None
    """Family of requests that name none."""

    uncached_isl_buckets: Buckets | None = None
    """Buckets, by the prompt tokens that are cached nowhere."""

    policy_classes: Classes | None = None
    """Classes: one for each family and bucket, and any number without either."""

    models: dict[str, PolicyProfile] = Field(default_factory=dict)
    """Profiles by model name; that of the run's model counts instead of the profile above."""

    def _conflicts(self) -> Iterator[tuple[Path, str]]:
        family, buckets, classes = self.default_policy_family, self.uncached_isl_buckets, self.policy_classes
        if family is not None and buckets is not None and classes is not None:
            yield from _profile_conflicts(family, buckets, classes)
            return
        keys = tuple(PolicyProfile.model_fields)
        missing = [key for key in keys if getattr(self, key) is None]
        if len(missing) < len(keys):
            for key in missing:
                yield (key,), f"missing; a profile has {', '.join(keys)}"
        elif not self.models:
            yield (keys[0],), f"missing; there must be a profile ({', '.join(keys)}), or models with profiles"

    def profile_of(self, model_name: str | None) -> PolicyProfile | None:
        """The profile of a model; None where only other models have one."""
        if model_name is not None and model_name in self.models:
            return self.models[model_name]
        if self.policy_classes is None:
            return None
        return PolicyProfile.model_construct(
            **{key: getattr(self, key) for key in PolicyProfile.model_fields}
        )


def _profile_conflicts(default_family: str, buckets: Buckets, classes: Classes) -> Iterator[tuple[Path, str]]:
    if not buckets or not classes:
        for key, items in (("uncached_isl_buckets", buckets), ("policy_classes", classes)):
            if not items:
                yield (key,), "must have at least 1 item"
        return
    yield from _bucket_conflicts(buckets)
    for position, first in repeats(each.name for each in classes):
        yield (
            ("policy_classes", position, "name"),
            f"found {classes[position].name!r}, the name of policy_classes.{first} too; must differ",
        )
    names = list(dict.fromkeys(each.bucket for each in buckets))
    families = list(dict.fromkeys(each.policy_family for each in classes if each.policy_family is not None))
    for position, each in enumerate(classes):
        if each.cache_bucket is not None and each.cache_bucket not in names:
            yield (
                ("policy_classes", position, "cache_bucket"),
                f"found {each.cache_bucket!r}; must be one of {', '.join(names)}",
            )
        if each.policy_family is None and each.name in families:
            yield (
                ("policy_classes", position, "name"),
                f"found {each.name!r}, the name of a family; must differ in a class without a family",
            )
    pairs = [(each.policy_family, each.cache_bucket) for each in classes]
    for position, first in repeats(pairs):
        if pairs[position] != (None, None):
            yield (
                ("policy_classes", position, "cache_bucket"),
                f"found family and bucket of policy_classes.{first}; each pair has one class",
            )
    for family, bucket in ((family, bucket) for family in families for bucket in names):
        if (family, bucket) not in pairs:
            yield (
                ("policy_classes",),
                f"has no class for family {family!r} and bucket {bucket!r}; each pair has one class",
            )
    if default_family not in families:
        known = f"must be one of {', '.join(families)}" if families else "but no class has a family"
        yield ("default_policy_family",), f"found {default_family!r}; {known}"


def _bucket_conflicts(buckets: Buckets) -> Iterator[tuple[Path, str]]:
    if buckets[0].min_tokens:
        yield (
            ("uncached_isl_buckets", 0, "min_tokens"),
            f"found {buckets[0].min_tokens}; the first bucket must begin at 0",
        )
    for position, (before, here) in enumerate(itertools.pairwise(buckets), start=1):
        if here.min_tokens <= before.min_tokens:
            yield (
                ("uncached_isl_buckets", position, "min_tokens"),
                f"found {here.min_tokens}; must be above {before.min_tokens}, where the bucket before begins",
            )
    for position, first in repeats(each.bucket for each in buckets):
        yield (
            ("uncached_isl_buckets", position, "bucket"),
            f"found {buckets[position].bucket!r}, the name of uncached_isl_buckets.{first} too; must differ",
        )


def _read(value: Any, info: ValidationInfo) -> Any:
    """The content of a policy file that is given by its path; anything else as it is."""
    if not isinstance(value, str):
        return value
    path = existing_path(value, info.context)
    try:
        source = read_yaml(read_whole(FilePath(path), MAX_YAML_BYTES).decode("utf-8-sig"), path)
    except ScenarioError as error:
        raise ValueError("; ".join(error.problems)) from None
    except UnicodeDecodeError:
        raise ValueError(f"cannot be read: {path} is not a text file") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot be read: {getattr(error, 'strerror', None) or error}: {path}") from None
    try:
        return PolicyFile.model_validate({} if source.data is None else source.data)
    except ValidationError as error:
        problems = [
            f"{source.place_of(problem.path, path, problem.about_key)}: {problem.text}"
            for problem in explain(error, PolicyFile)
        ]
        raise ValueError("; ".join(problems)) from None


def _or_a_path(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [*schema.get("anyOf", []), {"type": "string"}]


PolicyFileSource = Annotated[PolicyFile | None, BeforeValidator(_read), Field(json_schema_extra=_or_a_path)]
"""A policy file: its path, or its content."""
