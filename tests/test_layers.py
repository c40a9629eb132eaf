"""Imports point down the list of `docs/design.md`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dynamo_sim"
ENTRANCES = ("__init__", "__main__")


def layers() -> dict[str, int]:
    """Height of each module or folder of the package, as the document lists them from the top."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    listed = text.split("Imports point down this list only:")[1].split("## ")[0].strip().splitlines()
    found = {}
    for height, line in enumerate(reversed(listed)):
        head, _, rest = line.strip().partition("  ")
        for name in re.findall(r"(\w+)(?:\.py|/|,)", head + "," if "what all" not in head else rest):
            found[name] = height
    return found


def imports(file: Path) -> Iterator[str]:
    """Modules of the package that a file imports, those for type checking aside."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    checked = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    skipped = {id(inner) for block in checked for inner in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in skipped:
            parts = (node.module or "").split(".")
            if parts[0] == "dynamo_sim":
                yield from (parts[1:2] or [alias.name for alias in node.names])


def test_imports_point_down() -> None:
    height = layers()
    upward = []
    for file in sorted(PACKAGE.rglob("*.py")):
        own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if own not in ENTRANCES:
            upward += [f"{file.name} -> {other}" for other in imports(file) if height[other] > height[own]]
    assert not upward
