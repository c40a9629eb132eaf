"""Policies a person brings along: ``module:Class`` by name, or any object with the one method."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynamo_sim.autoscaling.policy import Policy, adapted, check_decide, loops_of, reads_of
from dynamo_sim.autoscaling.user_errors import raised
from dynamo_sim.errors import ScenarioError
from dynamo_sim.scenario.autoscaler.custom import is_class_name
from dynamo_sim.text import shown


def load_policy(
    name: str, options: Mapping[str, Any] | None = None, folder: str | Path | None = None
) -> Policy:
    """Build the policy ``name`` stands for.

    Args:
        name: ``package.module:Class``, a class with a method ``decide``; nothing else is called.
        options: keyword arguments of the class.
        folder: searched for the module first, such as the folder of the scenario.

    Raises:
        ScenarioError: no such module or class, the options do not fit, or what comes out is no policy.
    """
    module_name, _, attribute = name.partition(":")
    if not is_class_name(name):
        raise ScenarioError(
            f"a custom policy is named as module:Class, like my_policy:Halfway, got {shown(name)}"
        )
    try:
        module = _import(module_name, folder)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.split(".")[0] == error.name.split(".")[0]:
            raise ScenarioError(
                f"policy {name}: there is no module {module_name!r} beside the scenario or on the Python path"
            ) from error
        raise ScenarioError(f"policy {name}: its module cannot be imported: {raised(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ScenarioError(f"policy {name}: its module cannot be imported: {raised(error)}") from error
    make: Any = module
    for part in attribute.split("."):
        make = getattr(make, part, None)
        if make is None:
            raise ScenarioError(f"policy {name}: the module {module_name} has no {attribute!r}")
    if not inspect.isclass(make) or not (hasattr(make, "decide") or hasattr(make, "loops")):
        raise ScenarioError(  # nothing else is called: a scenario is data that people pass around
            f"policy {name}: {attribute!r} is not a class with a method decide(now_s, view, fleet)"
        )
    try:
        policy = make(**dict(options or {}))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ScenarioError(
            f"policy {name}: it cannot be made with {shown(dict(options or {}))}: {raised(error)}"
        ) from error
    return as_policy(policy, name)


def as_policy(candidate: Any, name: str | None = None) -> Policy:
    """A candidate as a policy.

    Raises:
        ScenarioError: it has no method ``decide(now_s, view, fleet)``, is a class instead of an object, or what it
            says of itself (``reads``, ``loops``, ``period_s`` ...) makes no sense.
    """
    called = name or type(candidate).__name__
    if inspect.isclass(candidate):
        raise ScenarioError(f"policy {called}: is a class; give an object: {candidate.__name__}(...)")
    try:
        policy = adapted(candidate)
        for loop in loops_of(policy, called):
            reads_of(loop.policy)
            check_decide(loop.policy)
    except ValueError as error:
        raise ScenarioError(f"policy {called}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a property of theirs
        raise ScenarioError(f"policy {called}: {raised(error)}") from error
    return policy


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
