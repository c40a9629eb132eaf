"""Every citation of a specification leads to a section of `docs/spec/`."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from tests.parity.autoscaling_vectors import vector_files
from tests.parity.cases import golden, topics
from tests.parity.rules import RULES, VECTOR_RULES
from tests.spec_citations import ROOT, citations, documents, exists, expanded, places
from tests.spec_index import INDEX, index
from tests.spec_topics import TOPICS, Topic


def test_every_cited_section_exists() -> None:
    specifications = documents()
    missing = [
        f"{file.relative_to(ROOT)}: spec {document}, {section}"
        for file in places()
        for document, section in citations(file.read_text(encoding="utf-8"))
        if document not in specifications or (section and not exists(specifications[document], section))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("as `spec 02, 7` says", [("02", "7")]),
        ("(`spec 08`)", [("08", "")]),
        ("(`spec 10, 2.1, 3.1 and 8.4`)", [("10", "2.1"), ("10", "3.1"), ("10", "8.4")]),
        ("(spec 05, 3 to 5)", [("05", "3"), ("05", "4"), ("05", "5")]),
        ("(spec 10, 8.1 to 8.3)", [("10", "8.1"), ("10", "8.2"), ("10", "8.3")]),
        ("(spec 02, 2; 05, 2; 04, 6.1)", [("02", "2"), ("05", "2"), ("04", "6.1")]),
        ("(spec 08, 3 and 09, 6)", [("08", "3"), ("09", "6")]),
        ("# late (spec 01,\n    # 8)", [("01", "8")]),
    ],
)
def test_citations_are_read(text: str, cited: list[tuple[str, str]]) -> None:
    assert list(citations(text)) == cited


def test_a_list_of_sections_is_expanded() -> None:
    assert list(expanded("1, 3 to 5 and 8")) == ["1", "3", "4", "5", "8"]


def test_a_numbered_step_counts_as_a_section() -> None:
    text = "## 5. One pass\n\n1. first\n2. second\n\n### 5.7 Detail\n\n## 6. Next\n\n3. third\n"
    assert exists(text, "5") and exists(text, "5.2") and exists(text, "5.7")
    assert not exists(text, "5.3") and not exists(text, "7")


def test_every_rule_with_golden_cases_exists_and_names_existing_cases() -> None:
    specifications = documents()
    for cited in (*RULES, *VECTOR_RULES):
        ((document, section),) = citations(cited)
        assert exists(specifications[document], section), cited
    for cited, cases in RULES.items():
        for topic, numbers in cases.items():
            assert not set(numbers) - {int(case["name"][:2]) for case in golden(topic)}, (cited, topic)


def test_every_golden_case_that_is_not_random_holds_a_rule() -> None:
    held = {
        (topic, number) for cases in RULES.values() for topic, numbers in cases.items() for number in numbers
    }
    named = {
        (topic, int(case["name"][:2]))
        for topic in topics()
        for case in golden(topic)
        if not {"fuzz", "random"} & set(case["name"].split("-"))
    }
    assert named - held == set()


def test_every_kind_of_vectors_holds_a_rule() -> None:
    kinds = {vectors["kind"] for vectors in vector_files().values()}
    assert kinds == {kind for kinds in VECTOR_RULES.values() for kind in kinds}


def test_the_index_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == index(), "python -m tests.spec_index writes it anew"


@pytest.mark.parametrize(
    "topic", [topic for topics in TOPICS.values() for topic in topics], ids=lambda topic: topic.question
)
def test_a_question_leads_to_a_rule_to_code_and_to_a_test(topic: Topic) -> None:
    document, section = topic.rule.split(", ")
    assert exists(documents()[document], section)
    file, name = topic.code.split(" ")
    here: Any = importlib.import_module(f"dynamo_sim.{file.removesuffix('.py').replace('/', '.')}")
    for part in name.split("."):
        here = getattr(here, part)
    file, name = topic.test.split(" ")
    assert re.search(rf"^def {name}\(", (ROOT / "tests" / file).read_text(encoding="utf-8"), re.MULTILINE)
