"""Makes chat_sessions.jsonl: conversations in turns that repeat and extend each other, in the mooncake format.

    python make_chat_sessions.py > chat_sessions.jsonl

All conversations begin with the same two blocks (a system prompt). Each turn's prompt is the one before, its answer and
a new question; it comes some seconds after the answer.
"""

import json
import random

BLOCK_TOKENS = 512
SYSTEM_BLOCKS = [0, 1]
CONVERSATIONS = 250
SPAN_MS = 120_000


def main() -> None:
    """Print the trace, one row a turn, the turns of a conversation in order."""
    draw = random.Random(20240607)
    starts_ms = sorted(draw.randint(0, SPAN_MS) for _ in range(CONVERSATIONS))
    next_id = 2
    for number, start_ms in enumerate(starts_ms):
        length = draw.randint(1, 3 * BLOCK_TOKENS) + len(SYSTEM_BLOCKS) * BLOCK_TOKENS
        ids = list(SYSTEM_BLOCKS)
        for turn in range(draw.randint(2, 7)):
            missing = -(-length // BLOCK_TOKENS) - len(ids)
            ids = ids + list(range(next_id, next_id + missing))
            next_id += missing
            output = draw.randint(10, 600)
            when = {"delay": draw.randint(2_000, 15_000)} if turn else {"timestamp": start_ms}
            row = {"session_id": f"chat-{number}", **when, "input_length": length}
            print(json.dumps({**row, "output_length": output, "hash_ids": ids}))
            if length % BLOCK_TOKENS:
                ids = ids[:-1]  # its last block was not full, the next turn fills it differently
            length += output + draw.randint(20, 2000)


if __name__ == "__main__":
    main()
