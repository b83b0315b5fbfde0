"""The running summary of a session: what has left its window, told in a few sentences."""

from collections.abc import Callable, Sequence

from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts import session_summary
from memories.llm.prompts.memory_update import TurnInput
from memories.llm.prompts.session_summary import LONGEST_SUMMARY, SessionSummary
from memories.pipeline import echo, suspicion, uploads
from memories.pipeline.cleaning import clean_lines
from memories.pipeline.feed import FedTurn
from memories.pipeline.redaction import redact_text

_ENDS = (". ", "! ", "? ", "\n", "。", "！", "？")


def ask(
    *, summary: str, turns: Sequence[FedTurn], max_calls: int, before_call: Callable[[], None]
) -> Completion[SessionSummary]:
    """Have `turns` folded into the summary so far. Errors: ModelError; exceptions of `before_call` pass."""
    said = [TurnInput(number=turn.number, role=turn.turn.role, text=turn.text, at=turn.at) for turn in turns]
    return client.complete(
        messages=session_summary.build(summary=summary, turns=said),
        answer=session_summary.ANSWER,
        max_calls=max_calls,
        before_call=before_call,
    )


def fit(text: str) -> str:
    """A model's summary as it may be kept; empty when nothing of it may, and what was known stays."""
    # Cut before the costly scrubbing.
    text = echo.cut_echo(clean_lines(text[: 2 * LONGEST_SUMMARY]))
    text = _shortened(redact_text(uploads.scrub(text))[0])
    # It is told to a model as the hub's own words, unlike the turns that it sums up.
    return "" if suspicion.INSTRUCTIONS in suspicion.flags(text, "", "") else text


def _shortened(text: str) -> str:
    """At most LONGEST_SUMMARY characters, whole sentences where there are any."""
    if len(text) <= LONGEST_SUMMARY:
        return text
    end = max(text.rfind(mark, 0, LONGEST_SUMMARY) + len(mark.strip()) for mark in _ENDS)
    return text[: end if end > 1 else LONGEST_SUMMARY].strip()
