"""What routers are built with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dynamo_sim.kv.prefix import PrefixInterner

if TYPE_CHECKING:
    from dynamo_sim.scenario.engine_args import EngineArgs


@dataclass(frozen=True)
class RouterContext:
    """What a router may need to know beside its own section.

    Attributes:
        engine: arguments of the workers it routes to.
        interner: names the blocks of prompts; the workers use the same one.
        seed: seed of the run.
        waits_for_workers: whether requests wait where no worker is active.
        stream: begins the names of the streams that it draws from.
        folder: of the scenario, where classes of the user are searched first; None for none.
    """

    engine: EngineArgs
    interner: PrefixInterner
    seed: int = 0
    waits_for_workers: bool = False
    stream: str = "routing"
    folder: Path | None = None
