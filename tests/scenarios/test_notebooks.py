"""Every notebook runs from its first cell to its last, and the outputs stored in it are those of such a run."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.scenarios.notebooks import FOLDER, executed, shown

MAX_BYTES = 200_000


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_a_run_of_it_shows(path: Path) -> None:
    stored = nbformat.read(path, as_version=4)
    assert shown(stored) == shown(executed(path)), "python -m tests.scenarios.notebooks"
    assert path.stat().st_size < MAX_BYTES


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_ends_with_a_picture_and_the_answer_in_words(path: Path) -> None:
    *_, picture, answer = nbformat.read(path, as_version=4).cells
    assert answer.cell_type == "markdown" and answer.source.startswith("**")
    assert any("image/png" in output["data"] for output in picture.outputs)
