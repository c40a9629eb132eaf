"""Imports point down the list of `docs/design.md`, and no modules import each other in a circle.

Every import counts: at the top of a file, inside a function, and for type checking only.
"""

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


def module_of(file: Path) -> str:
    """Dotted name of a file below the package, without the name of the package: ``kv.block_pool``."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def imports(module: str) -> Iterator[str]:
    """Modules of the package that a module imports; a name that is no module stands for the one that holds it."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dynamo_sim":
            origin = (node.module or "").removeprefix("dynamo_sim").removeprefix(".")
            for alias in node.names:
                inner = f"{origin}.{alias.name}".removeprefix(".")
                yield inner if inner in MODULES else origin or "__init__"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "dynamo_sim":
                    yield alias.name.removeprefix("dynamo_sim").removeprefix(".") or "__init__"


GRAPH = {module: set(imports(module)) - {module} for module in MODULES}


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """All modules that a module imports, directly or through others."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - found
        found |= new
        ahead += new
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module: each member reaches every other."""
    below = {module: reached(graph, module) for module in graph}
    groups = {frozenset(other for other in below[module] if module in below[other]) for module in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def test_imports_point_down() -> None:
    height = layers()
    upward = {
        f"{module} -> {other}"
        for module, others in GRAPH.items()
        if module.split(".")[0] not in ENTRANCES
        for other in others
        if height[other.split(".")[0]] > height[module.split(".")[0]]
    }
    assert upward == set(), "these imports point up"


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(GRAPH) == []


def test_a_circle_is_found_through_any_number_of_modules() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_tests_lie_as_the_package_does() -> None:
    """The tests of a module are in the folder of its name; three folders of tests are about the whole."""
    tests = ROOT / "tests"
    mirrored = {
        file.parent.relative_to(tests).as_posix()
        for file in tests.rglob("test_*.py")
        if file.relative_to(tests).parts[0] not in ("parity", "properties", "scenarios")
    }
    assert {folder for folder in mirrored if not (PACKAGE / folder).is_dir()} == set()
    folders = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert folders - {folder.split("/")[0] for folder in mirrored} == set(), (
        "these have no tests of their own"
    )
