"""Makes chat_trace.jsonl: conversations whose prompts repeat and extend each other, in the mooncake format.

    python make_chat_trace.py > chat_trace.jsonl

All conversations begin with the same two blocks (a system prompt). Each turn's prompt is the one before, its
answer and a new question. Arrivals carry one time stamp for every three seconds, as recorded traces do.
"""

import json
import random

BLOCK_TOKENS = 512
SYSTEM_BLOCKS = [0, 1]


def main() -> None:
    """Print the trace, one row a line, in order of time."""
    draw = random.Random(20240607)
    rows = []
    next_id = 2
    for _ in range(90):
        now_ms = draw.uniform(0, 300_000)
        length = draw.randint(1, 3 * BLOCK_TOKENS) + len(SYSTEM_BLOCKS) * BLOCK_TOKENS
        ids = list(SYSTEM_BLOCKS)
        for _ in range(draw.randint(1, 6)):
            missing = -(-length // BLOCK_TOKENS) - len(ids)
            ids = ids + list(range(next_id, next_id + missing))
            next_id += missing
            output = draw.randint(10, 600)
            timestamp = int(now_ms // 3000) * 3000
            rows.append(
                {"timestamp": timestamp, "input_length": length, "output_length": output, "hash_ids": ids}
            )
            if length % BLOCK_TOKENS:
                ids = ids[:-1]  # its last block was not full, the next turn fills it differently
            length += output + draw.randint(20, 2000)
            now_ms += draw.uniform(15_000, 60_000)
    for row in sorted(rows, key=lambda row: row["timestamp"]):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
