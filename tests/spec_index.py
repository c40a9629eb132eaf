"""Writes `docs/spec/INDEX.md`: where each rule of the specifications stands in code and test.

    python -m tests.spec_index

It is made of the questions in `tests/spec_topics.py`, of the citations in the files, and of the golden cases named in
`tests/parity/rules.py`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from tests.parity.rules import RULES, VECTOR_RULES
from tests.spec_citations import ROOT, SPEC, citations, documents, places, step, titles
from tests.spec_topics import TOPICS

INDEX = SPEC / "INDEX.md"
HEAD = """\
# Where each rule stands

First come questions about behaviour, each with the section that answers it, what decides it in the code (below
`dynamo_sim/`) and a test that shows it (below `tests/`). Then come all sections. This page is written by
`python -m tests.spec_index`, and a test keeps it true.
"""

SECTIONS_HEAD = """\
# All sections

Sections of the [specifications](README.md) with the files that cite them. Where 5.3 is no section but step 3 of section
5, its first words are in italics. Code is below `dynamo_sim/`, tests are below `tests/`. Golden cases are in
`tests/parity/cases/`, by topic and number; `pytest tests/parity/test_golden.py -k vllm/25` runs one. Cases of the topic
autoscaling are named by their kind.
"""

Cited = dict[tuple[str, str], set[str]]


def cited_by_folder() -> tuple[Cited, Cited]:
    """The files of the package, and those of the tests, that cite each (document, section)."""
    code: Cited = defaultdict(set)
    tests: Cited = defaultdict(set)
    for file in places():
        folder, _, name = file.relative_to(ROOT).as_posix().partition("/")
        found = {"dynamo_sim": code, "tests": tests}.get(folder)
        if found is not None:
            for document, section in citations(file.read_text(encoding="utf-8")):
                found[document, section].add(name)
    return code, tests


def golden_cases() -> dict[tuple[str, str], list[str]]:
    """The golden cases of each (document, section), a text a topic: ``"vllm 1, 2, 8"``."""
    cases = {
        next(citations(cited)): [
            f"{topic} {', '.join(map(str, numbers))}" for topic, numbers in sorted(topics.items())
        ]
        for cited, topics in RULES.items()
    }
    vectors = {
        next(citations(cited)): [f"autoscaling {', '.join(kinds)}"] for cited, kinds in VECTOR_RULES.items()
    }
    return {**cases, **vectors}


def in_order(section: str) -> tuple[int, ...]:
    """Sort key of a section's number."""
    return tuple(int(part) for part in section.split(".")) if section else ()


def beginning(text: str) -> str:
    """The first words of a step, up to a mark of punctuation."""
    words = re.split(r"[.:;|]", re.sub(r"[*`]", "", text))[0].split()
    return f"*{' '.join(words[:8])}*" if words else ""


def title(text: str, section: str) -> str:
    """The title of a section, without its mark; the first words of a step."""
    return titles(text).get(section, "").split(" [")[0] or beginning(step(text, section) or "")


def questions() -> Iterator[str]:
    """A table a part of `TOPICS`."""
    texts = documents()
    files = {path.name[:2]: path.name for path in SPEC.glob("[0-9][0-9]-*.md")}
    for part, topics in TOPICS.items():
        yield f"## {part}\n\n| question | section | code | test |\n|---|---|---|---|\n" + "".join(
            f"| {topic.question} | [{topic.rule}]({files[document]}) {title(texts[document], section)} "
            f"| `{topic.code.replace(' ', '` `')}` | `{topic.test.replace(' ', '` `')}` |\n"
            for topic in topics
            for document, section in [topic.rule.split(", ")]
        )


def index() -> str:
    """The text of the page."""
    code, tests = cited_by_folder()
    golden = golden_cases()

    def rows(document: str, text: str) -> Iterator[str]:
        mentioned = {key for cited in (code, tests, golden) for key in cited if key[0] == document}
        for section in sorted({section for _, section in mentioned}, key=in_order):
            key = (document, section)
            cells = [
                section or "all",
                title(text, section),
                ", ".join(f"`{name}`" for name in sorted(code.get(key, ()))),
                ", ".join(f"`{name}`" for name in sorted(tests.get(key, ()))),
                "; ".join(golden.get(key, ())),
            ]
            yield f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")

    parts = [HEAD, *questions(), SECTIONS_HEAD]
    for document, text in documents().items():
        heading = text.splitlines()[0].removeprefix("# ")
        table = [
            "| section | rule | code | tests | golden cases |",
            "|---|---|---|---|---|",
            *rows(document, text),
        ]
        parts.append(f"## {heading}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    INDEX.write_text(index(), encoding="utf-8")
