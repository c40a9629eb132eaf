"""Runs notebooks and stores what they show: python -m tests.scenarios.notebooks

A stored picture is small: few colours are enough for lines and bars.
"""

from __future__ import annotations

import base64
import io
import os
import re
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
COLOURS = 48
# As in a person's notebook, also where the shell that runs the tests sets a backend without a screen.
INLINE = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}


def executed(path: Path) -> Any:
    """The notebook of a file after a run of all its cells, in the folder of the file."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(path.parent)}}
    ).execute(env={**os.environ, **INLINE})
    return notebook


def shown(notebook: Any) -> list[list[str]]:
    """What each cell shows, whatever the versions of libraries: numbers in texts, and where pictures are."""
    return [
        [
            " ".join(re.findall(r"\d[\d,.]*", output["data"].get("text/plain", ""))) or "picture"
            if "image/png" not in output["data"]
            else "picture"
            for output in cell.get("outputs", [])
            if "data" in output
        ]
        for cell in notebook.cells
    ]


def store(path: Path) -> None:
    """Run a notebook and write it with its outputs."""
    notebook = executed(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if "data" in output]
            cell.metadata = {}
        for output in cell.get("outputs", []):
            if "image/png" in output["data"]:
                output["data"] = {"image/png": smaller(output["data"]["image/png"])}
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    path.write_text(nbformat.writes(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def smaller(png: str) -> str:
    """A picture in base64 with fewer colours."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    file = io.BytesIO()
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.ipynb")):
        store(file)
