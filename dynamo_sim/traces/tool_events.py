"""Tool calls as traces record them; most of their fields do nothing and still have to be of their types."""

from __future__ import annotations

from typing import Any

from dynamo_sim.traces.fields import number, require, text, whole

ALWAYS = ("tool_call_id", "tool_class")
WHEN_ENDED = ("status", "duration_ms", "started_at_unix_ms", "ended_at_unix_ms")


def check_tool_event(tool: dict[str, Any], ended: bool) -> None:
    """Refuse a tool call that lacks a field or has one of a wrong type.

    Args:
        tool: the call.
        ended: whether it has to say how and when it ended.

    Raises:
        BadLine: so it is.
    """
    require(tool, (*ALWAYS, *WHEN_ENDED) if ended else ALWAYS)
    for name in ("tool_call_id", "tool_class", "status", "error_type"):
        text(tool, name)
    for name in ("started_at_unix_ms", "ended_at_unix_ms", "output_tokens", "output_bytes"):
        whole(tool, name)
    number(tool, "duration_ms")
