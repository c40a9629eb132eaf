"""Objects of a class that a person names as ``module:Class``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dynamo_sim.errors import ScenarioError
from dynamo_sim.text import shown
from dynamo_sim.user_code.calls import raised


class WantedClass(NamedTuple):
    """What a class has to be.

    Attributes:
        what: what its objects are, such as ``policy``.
        example: a name of one.
        methods: it has one of these at least.
        signature: the method that most have.
    """

    what: str
    example: str
    methods: tuple[str, ...]
    signature: str


def is_class_name(text: str) -> bool:
    """Whether it is like ``module:Class``."""
    module, _, attribute = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def made_from_class(
    name: str, options: Mapping[str, Any] | None, folder: str | Path | None, wanted: WantedClass
) -> Any:
    """An object of the class ``name`` stands for.

    Args:
        name: ``package.module:Class``; nothing else is called.
        options: keyword arguments of the class.
        folder: searched for the module first, such as the folder of the scenario.
        wanted: what the class has to be.

    Raises:
        ScenarioError: no such module or class, a class of another kind, or the options do not fit.
    """
    what = wanted.what
    module_name, _, attribute = name.partition(":")
    if not is_class_name(name):
        raise ScenarioError(
            f"a custom {what} is named as module:Class, like {wanted.example}, got {shown(name)}"
        )
    try:
        module = _import(module_name, folder)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.split(".")[0] == error.name.split(".")[0]:
            raise ScenarioError(
                f"{what} {name}: there is no module {module_name!r} beside the scenario or on the Python path"
            ) from error
        raise ScenarioError(f"{what} {name}: its module cannot be imported: {raised(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ScenarioError(f"{what} {name}: its module cannot be imported: {raised(error)}") from error
    make: Any = module
    for part in attribute.split("."):
        make = getattr(make, part, None)
        if make is None:
            raise ScenarioError(f"{what} {name}: the module {module_name} has no {attribute!r}")
    if not inspect.isclass(make) or not any(hasattr(make, method) for method in wanted.methods):
        raise ScenarioError(  # nothing else is called: a scenario is data that people pass around
            f"{what} {name}: {attribute!r} is not a class with a method {wanted.signature}"
        )
    try:
        return make(**dict(options or {}))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ScenarioError(
            f"{what} {name}: it cannot be made with {shown(dict(options or {}))}: {raised(error)}"
        ) from error


_BESIDE: dict[str, str] = {}
"""Modules that were found beside a scenario, and its folder."""


def _import(module_name: str, folder: str | Path | None) -> Any:
    """Import a module; one of the same name that was found beside another scenario is forgotten before."""
    if folder is None:
        return importlib.import_module(module_name)
    place = str(Path(folder).resolve())
    for name in [name for name, home in _BESIDE.items() if home != place]:
        sys.modules.pop(name, None)
        del _BESIDE[name]
    _refuse_hidden(module_name.split(".")[0], Path(place))
    before = set(sys.modules)
    sys.path.insert(0, place)
    try:
        importlib.invalidate_caches()
        return importlib.import_module(module_name)
    finally:
        sys.path.remove(place)
        new = [name for name in sys.modules if name not in before]
        _BESIDE.update((name, place) for name in new if _is_in(sys.modules[name], place))


def _refuse_hidden(name: str, place: Path) -> None:
    """Refuse a module beside the scenario that another one of the same name hides."""
    there = (place / f"{name}.py").is_file() or (place / name / "__init__.py").is_file()
    if there and name in sys.modules and not _is_in(sys.modules[name], str(place)):
        raise ImportError(f"another module {name!r} is loaded already; give yours another name")


def _is_in(module: Any, place: str) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(place)
