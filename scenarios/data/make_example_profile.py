"""Makes example_profile.npz: a timing profile of no real machine, in the form that planner_profile_data takes.

    python make_example_profile.py example_profile.npz

A prefill takes 12 ms and 25 us a token, and a little more for long prompts. A decode step reads the weights
(8 ms) and the cache (0.2 us a token in use); short contexts mean many requests, which cost 40 us each.
"""

import sys

import numpy as np

ISL = np.array([128, 512, 1024, 2048, 4096, 8192, 16384], dtype=np.float64)
ACTIVE = np.array([512, 8192, 16384, 32768, 65536, 131072], dtype=np.float64)
CONTEXT = np.array([512, 1024, 2048, 4096, 8192], dtype=np.float64)


def main() -> None:
    """Write the five arrays to the file that is named."""
    requests = ACTIVE[:, None] / CONTEXT
    with open(sys.argv[1], "wb") as out:
        np.savez(
            out,
            prefill_isl=ISL,
            prefill_ttft_ms=12.0 + 0.025 * ISL + 1e-7 * ISL**2,
            decode_active_kv_tokens=ACTIVE,
            decode_context_length=CONTEXT,
            decode_itl=8.0 + 2e-4 * ACTIVE[:, None] + 0.04 * requests,
        )


if __name__ == "__main__":
    main()
