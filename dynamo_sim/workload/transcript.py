"""A conversation of increments so far (`spec 08, 7`)."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_sim.workload.request import MIN_UNIQUE_TOKEN, Request, Runs


class Transcript:
    """What was asked and answered in a conversation, as merged runs.

    Attributes:
        runs: the runs so far; only the last of them can still grow.
        tokens: their length.
        naming: for whoever names the blocks of its prompts, to go on where the turn before ended.
    """

    __slots__ = ("naming", "runs", "tokens")

    def __init__(self) -> None:
        self.runs: list[tuple[int, int]] = []
        self.tokens = 0
        self.naming: object = None

    def asked(self, request: Request, is_last: bool) -> None:
        """Append a turn's own tokens and make the whole conversation its prompt.

        An answer that the trace does not plan gets one token value of its own, repeated. The reference draws
        a value a token, but only equality counts: the tokens of an answer come up again only in later turns
        of this session, behind the same tokens and in the same places. The last answer comes up nowhere.
        """
        self._append(request.prompt or ())
        request.content = PromptSoFar(self)
        request.input_tokens = self.tokens
        if request.planned_output is None and not is_last:
            request.planned_output = (MIN_UNIQUE_TOKEN + request.index,) * request.output_tokens

    def answered(self, request: Request, generated_tokens: int) -> None:
        """Append the answer of a completed turn, as far as it was generated (TRT-LLM cuts it to the pool)."""
        answer = (request.planned_output or ())[:generated_tokens]
        if answer and answer[0] >= MIN_UNIQUE_TOKEN:
            self._append(((answer[0], len(answer)),))
        else:
            self._append([(value, 1) for value in answer])

    def _append(self, runs: Iterable[tuple[int, int]]) -> None:
        for value, length in runs:
            if self.runs and self.runs[-1][0] == value:
                self.runs[-1] = (value, self.runs[-1][1] + length)
            else:
                self.runs.append((value, length))
            self.tokens += length


class PromptSoFar:
    """The prompt of a turn: its conversation as it is now, without a copy of it.

    Attributes:
        transcript: the conversation, which may go on.
        run_count: how many of its runs belong to the prompt.
        last_run: the last of those, which may grow later; empty for an empty prompt.
    """

    __slots__ = ("last_run", "run_count", "transcript")

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.run_count = len(transcript.runs)
        self.last_run: Runs = tuple(transcript.runs[-1:])

    def runs_of(self, row: int) -> Runs:
        """All of its runs."""
        return (*self.transcript.runs[: max(self.run_count - 1, 0)], *self.last_run)
