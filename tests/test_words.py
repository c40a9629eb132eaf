"""One word for one thing: words that the glossary replaced do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

REPLACED = {
    r"(?:a|an|each|every|two|next|last|first|one|its|the|of) looks?\b(?!-)": "evaluation, sync or scrape",
    r"look(?:s|ed)?_(?!ahead)\w+|\w+_looks?": "evaluation",
    r"(?:is|are|was|were|be|been|being) told(?! (?:apart|to))": "reported",
    r"wish(?:es|ed)?": "desired",
    r"proposals?": "desired replicas; recommendation",
    r"KV room": "KV pool, KV tokens",
    r"_?(?:MOST|LARGEST|LONGEST|DEEPEST|HIGHEST)_\w+": "MAX_",
    r"_?(?:LEAST|SMALLEST|SHORTEST|LOWEST)_\w+": "MIN_",
    r"\w*(?:futile|FUTILE|fruitless|FRUITLESS)\w*|in vain": "no progress, idle",
    r"judged?|judging": "admission check",
    r"held_requests|holds_requests|_held_ms": "queued",
    r"front door": "frontend queue",
    r"call(?:s|ed)? off": "cancelled",
    r"hair apart": "closer than the resolution of the clock",
    r"_?spoke|_silent": "first token emitted, no token yet",
    r"anchor": "last_node",
    r"never_fits": "exceeds_pool",
    r"oldest_first": "preemption_mode",
    r"under_way|under way": "in progress",
    r"announce_cache|cache_events": "publish_kv_events, KV events",
    r"the truth": "exact metrics",
    r"engine core|worker cores?": "scheduler",
    r"own_\w+|of one's own": "private, custom",
    r"fresh_\w+|fresh": "new, uncached, unallocated",
    r"leaving": "draining",
    r"watched": "recorded",
}
"""What is not said any more, as a pattern of whole words, and what is said instead (docs/glossary.md)."""

OTHERWISE = {
    "CHANGELOG.md": "says which names have changed",
    "dynamo_sim/autoscaling/decision.py": "takes a name of before",
    "dynamo_sim/autoscaling/fleet_view.py": "takes names of before",
    "tests/autoscaling/test_earlier_names.py": "tests names of before",
    "dynamo_sim/autoscaling/kubernetes/manifests/yaml_text.py": "has a word of PyYAML",
    "tests/parity/autoscaling_vectors.py": "has keys of recorded vectors",
    "tests/test_docs.py": "has a word of HTML",
    "tests/test_words.py": "lists the words",
}
"""Files that may say them, and why. The specifications have words of their own, which their README explains."""

FILES = (
    "*.md",
    "docs/*.md",
    "dynamo_sim/**/*.py",
    "tests/**/*.py",
    "benchmarks/*.*",
    "scenarios/**/*.yaml",
    "scenarios/**/*.md",
    "notebooks/*.ipynb",
)


def texts() -> dict[str, str]:
    """The text of every file of the project by its name."""
    files = {file.relative_to(ROOT).as_posix(): file for pattern in FILES for file in ROOT.glob(pattern)}
    return {
        name: file.read_text(encoding="utf-8")
        for name, file in sorted(files.items())
        if name not in OTHERWISE
    }


TEXTS = texts()


@pytest.mark.parametrize("pattern", REPLACED)
def test_words_that_were_replaced_do_not_come_back(pattern: str) -> None:
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), 1)
        if re.search(rf"\b(?:{pattern})\b", line)
    ]
    assert not found, f"say {REPLACED[pattern]}"
