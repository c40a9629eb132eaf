"""Citations such as `spec 02, 7` in code, tests and docs, and the sections of `docs/spec/` they name.

A citation names a document and sections or numbered steps of it: ``spec 02, 5.3``, ``spec 08, 2, 6 and 9``,
``spec 05, 3 to 5``, ``spec 02, 2; 04, 6.1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "docs" / "spec"

_NUMBER = r"\d+(?:\.\d+)*"
_LIST = rf"{_NUMBER}(?:(?:, | and | to |-)(?!0\d){_NUMBER})*"
_CITATION = re.compile(rf"\b[Ss]pec (\d\d)\b(?:, ({_LIST}))?((?:(?:; | and )\d\d, {_LIST})*)")
_FURTHER = re.compile(rf"(?:; | and )(\d\d), ({_LIST})")
_LINE_BREAK = re.compile(r"\s*\n[ \t]*(?:# ?)?")


def expanded(sections: str) -> Iterator[str]:
    """The single sections of a list: ``"2, 4 to 6"`` gives 2, 4, 5, 6."""
    for part in re.split(r", | and ", sections):
        first, _, last = part.replace(" to ", "-").partition("-")
        above, _, number = first.rpartition(".")
        for value in range(int(number), int(last.rpartition(".")[2] or number) + 1):
            yield f"{above}.{value}" if above else str(value)


def citations(text: str) -> Iterator[tuple[str, str]]:
    """(document, section) of each citation in a text; the section is empty where a whole document is cited."""
    for found in _CITATION.finditer(_LINE_BREAK.sub(" ", text)):
        for document, sections in [found.group(1, 2), *_FURTHER.findall(found.group(3))]:
            yield from (
                ((document, section) for section in expanded(sections)) if sections else [(document, "")]
            )


def documents() -> dict[str, str]:
    """Text of each specification by its number: ``{"01": ..., ...}``."""
    return {path.name[:2]: path.read_text(encoding="utf-8") for path in sorted(SPEC.glob("[0-9][0-9]-*.md"))}


def titles(text: str) -> dict[str, str]:
    """Title of each numbered section of a specification, in its order: ``{"6": "One instant", "6.1": ...}``."""
    return dict(re.findall(rf"^##+ ({_NUMBER}[a-z]?)\.? (.+)$", text, re.MULTILINE))


def step(text: str, section: str) -> str | None:
    """The text of a numbered step of the section above: 5.3 is step 3 of section 5; None where there is none."""
    above, _, number = section.rpartition(".")
    body = (
        re.search(rf"^##+ {re.escape(above)}\.? .+\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE)
        if above
        else None
    )
    if body is None:
        return None
    at_the_margin = re.search(rf"^{number}\. (.+)", body.group(1), re.MULTILINE)
    found = at_the_margin or re.search(rf"(?:\s|\(){number}\. (.+)", body.group(1))
    return found.group(1) if found else None


def exists(text: str, section: str) -> bool:
    """Whether a specification has a section, or a numbered step of the section above."""
    return section in titles(text) or step(text, section) is not None


def places() -> list[Path]:
    """Every file in which citations count."""
    patterns = (
        "dynamo_sim/**/*.py",
        "tests/**/*.py",
        "benchmarks/*.py",
        "docs/*.md",
        "README.md",
        "CONTRIBUTING.md",
    )
    about_citations = {"spec_citations.py", "spec_index.py", "spec_topics.py", "test_spec.py", "rules.py"}
    return [
        file
        for pattern in patterns
        for file in sorted(ROOT.glob(pattern))
        if file.name not in about_citations
    ]
