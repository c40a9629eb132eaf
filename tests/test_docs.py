"""The documents name files that exist, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("*/README.md"))]
HOMES = (ROOT, ROOT / "dynamo_sim", ROOT / "tests")
"""Where a path in a document may start."""


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`((?:[\w.]+/)+(?:[\w-]+\.(?:py|md|yaml|ipynb))?)`", page.read_text(encoding="utf-8"))
    elsewhere = ("results", "data")  # what a run writes, and what a user has
    missing = [
        name
        for name in named
        if "NAME" not in name and name.split("/")[0] not in elsewhere
        if not any((home / name).exists() for home in HOMES)
    ]
    assert missing == []
