"""The largest sizes there are; more is a mistake, or would fill the memory."""

from __future__ import annotations

MAX_WORKERS = 100_000
"""Workers of a fleet."""

MAX_REQUESTS = 50_000_000
"""Requests of a run; their arrival times alone are 400 MB."""

MAX_TOKENS = 2**31 - 1
"""Tokens of a prompt, of an answer, or behind one id of a trace."""

MAX_BLOCKS = 1 << 24
"""Blocks of one token sequence; the reference numbers their positions up to here."""

MAX_TRACE_IDS = 1 << 28
"""Ids of blocks in a trace; each takes 4 bytes."""

MIN_PER_WORKER = 1e-6
"""Of a metric, for one worker to have; less is a mistake in the unit, and would order workers without end."""

MAX_SCALE = 1e12
"""From one unit of a metric to another."""

MAX_YAML_BYTES = 4 << 20
"""Bytes of a scenario, a manifest or a configuration; YAML of this size takes half a minute to read."""
