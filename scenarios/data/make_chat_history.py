"""Writes chat_history.jsonl: conversations whose prompts are all that was said before, and a new question.

A row is a request in the Mooncake format; an id stands for 512 tokens. All conversations begin with the same one.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

CONVERSATIONS, TURNS = 40, 6
START_EVERY_MS, PAUSE_MS = 2500, 20_000


def rows() -> list[dict[str, object]]:
    draw = random.Random(7)
    found = []
    for conversation in range(CONVERSATIONS):
        at_ms = conversation * START_EVERY_MS
        first_id = 1 + 100 * conversation
        blocks = [0, *range(first_id, first_id + draw.randint(4, 8))]
        for _ in range(TURNS):
            found.append(
                {
                    "timestamp": at_ms,
                    "input_length": 512 * len(blocks),
                    "output_length": draw.randint(60, 140),
                    "hash_ids": list(blocks),
                }
            )
            at_ms += draw.randint(PAUSE_MS // 2, 2 * PAUSE_MS)
            last = blocks[-1]
            blocks += range(last + 1, last + 1 + draw.randint(1, 2))
    return sorted(found, key=lambda row: int(str(row["timestamp"])))


if __name__ == "__main__":
    lines = [json.dumps(row) + "\n" for row in rows()]
    Path(__file__).with_name("chat_history.jsonl").write_text("".join(lines), encoding="utf-8")
