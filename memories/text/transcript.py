"""Which turns of a session extraction reads, and which parts of their text (rules.md, 1.3); pure."""

import html
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from memories.invisible import strip_invisible
from memories.models import Author, Role, Turn
from memories.models.folding import fold
from memories.text import echo, uploads

TRIVIAL = frozenset(
    {"ok", "okay", "got it", "thanks", "thank you", "cheers"}
    | {"嗯", "好的", "好的呢", "好", "好呀", "谢谢", "感谢", "多谢"}
    | {"对", "是的", "收到", "明白", "了解", "知道了"}
)
_LONGEST_TRIVIAL = 200
# A single letter is in nearly every text and proves nothing.
_SHORTEST_QUOTE = 2


@dataclass(frozen=True)
class TranscriptTurn:
    """A turn as extraction reads it: its author's own words, without blocks of uploads and of our own contexts."""

    turn: Turn
    text: str

    @property
    def number(self) -> int:
        return self.turn.number

    @property
    def at(self) -> datetime:
        """When it was said."""
        return self.turn.sent_at

    @property
    def is_user(self) -> bool:
        return self.turn.is_said

    @property
    def is_certain(self) -> bool:
        """Whether the person said it, as far as anybody can tell."""
        return self.is_user and not self.is_doubtful

    @property
    def is_others(self) -> bool:
        """Whether another speaker said it."""
        return self.turn.speaker == Author.OTHER

    @property
    def is_doubtful(self) -> bool:
        """Whether a program may have made the text around the person's words."""
        return self.turn.is_doubtful

    def contains(self, quote: str) -> bool:
        """Whether it has `quote`, as written or as a prompt escapes it; folded (NFKC, case, spaces, punctuation)."""
        readings = (_words(quote), _words(html.unescape(quote)))
        return any(len(words) >= _SHORTEST_QUOTE and words in self._folded for words in readings)

    @cached_property
    def _folded(self) -> str:
        # Cached: many candidates can quote one long turn.
        return _words(self.text)


def fed(turns: Iterable[Turn]) -> Iterator[TranscriptTurn]:
    """Those of the turns of one session, given in order, that extraction reads.

    The reply to a dropped user turn is dropped as well, if that user turn is among `turns`.
    """
    drop_reply = False
    for turn in turns:
        if turn.is_said and not is_hidden(turn):
            shown = _shown(turn)
            drop_reply = not shown.text.strip() or is_trivial(shown.text)
            if not drop_reply:
                yield shown
        elif is_final_reply(turn):
            shown = _shown(turn)
            if shown.text.strip() and not drop_reply:
                yield shown
            drop_reply = False
        elif turn.speaker == Author.OTHER and not is_hidden(turn):
            yield _shown(turn)


def is_final_reply(turn: Turn) -> bool:
    """An assistant turn that does not merely call tools."""
    return turn.role == Role.ASSISTANT and not turn.tool_calls


def is_hidden(turn: Turn) -> bool:
    """A message that the application does not show to its users."""
    return turn.metadata.get("hide_from_ui") is True


def is_trivial(text: str) -> bool:
    """Whether the text is a courtesy and nothing else; punctuation at its end does not count."""
    if len(text) > _LONGEST_TRIVIAL:
        return False
    words = fold(text)
    while words and (words[-1] in "~ " or unicodedata.category(words[-1]).startswith("P")):
        words = words[:-1]
    return words in TRIVIAL


def _shown(turn: Turn) -> TranscriptTurn:
    own = turn.own_text
    text = echo.cut_echo(uploads.cut_blocks(own))
    return TranscriptTurn(turn=turn, text=text if text == own else text.strip())


def _words(text: str) -> str:
    """Letters, digits and symbols alone, as a prompt shows them."""
    folded = fold(strip_invisible(text))
    return "".join(character for character in folded if unicodedata.category(character)[0] not in "PZC")
