"""The exit codes of all commands."""

DONE = 0

FAILED = 1
"""The run could not go on, no request could be served, or output could not be written."""

BAD_INPUT = 2

CONDITION_HOLDS = 3
"""A condition of ``--fail-on`` holds."""

SIGNAL = 128
"""Ended by signal N: 128 + N; 130 is Ctrl-C, 129 hung up, 143 terminated."""
