"""Turns of assistants and tools that contain instructions to a model: contexts do not recall them.

Turns of users are shown as data, whatever they say. The embedder judges turns when it embeds them. A turn that it has
not judged is judged when it is read, by the part of its text that a context would show.

A turn is flagged by the meaning of that part, or by a phrase. Assistants often advise and explain, so a phrase alone is
not enough: it does not count if the meaning of its sentence is clearly harmless.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from memories.exceptions import EmbeddingError
from memories.llm.prompts.framing import TRUNCATED, shorten
from memories.models import Author, Role, Turn
from memories.text import sentences, uploads
from memories.text.injection import detection, meaning, unmasking
from memories.text.injection.detection import FoundClaim
from memories.text.injection.verdicts import cached_verdict

JUDGED = (Role.ASSISTANT, Role.TOOL, Author.APPLICATION, Author.MODEL, Author.OTHER)
# Characters of a batch that the embedder searches for phrases: at most a second of work, whatever was posted. Turns
# beyond are judged when they are read.
MOST_JUDGED = 200_000

# The lowest scores at which a sentence with a phrase still counts: outside of code, and in code.
_SPARED, _SPARED_IN_CODE = -2.5, -1.0
# The form of every command, and what an assistant that helps with programs says all the time.
_EVERYDAY = "tools"
# Sending or paying to an address counts whoever says it.
_TO_AN_ADDRESS = ("sending", "payment")
_ADDRESSES = ("zmail", "zurl", "ziban")
_MOST_CLAIMS = 40
_CODE = re.compile(r"```.{0,100000}?```|`[^`\n]{1,300}`", re.DOTALL)
_CACHED = 2_048


def verdicts(texts: Sequence[str]) -> list[bool | None]:
    """Whether turns of assistants and tools with these texts are flagged; None beyond MOST_JUDGED characters."""
    lengths = accumulate(min(len(text), unmasking.LONGEST) for text in texts)
    judged_texts = [text for text, length in zip(texts, lengths, strict=True) if length <= MOST_JUDGED]
    try:
        found = _flagged(judged_texts)
    except EmbeddingError:
        # Without an embedding only the phrases count.
        found = [detection.speaks_to_model(text) for text in judged_texts]
    return [*found, *[None] * (len(texts) - len(found))]


def judged(voice: str, content: str) -> bool:
    """Whether a turn of that voice is flagged, by the part of its text that a context shows."""
    if voice not in JUDGED:
        return False
    shown = _shown(content)
    try:
        return _cached(shown)
    except EmbeddingError:
        return detection.speaks_to_model(shown)


def split_instructions(text: str, *, is_own: bool = False) -> tuple[str, str]:
    """The sentences of a turn that speak to no model, and those that do.

    `is_own`: a person's turn. If it has a phrase that speaks to a model they may have pasted it, and the rest with it.
    """
    spoken = [text[start:end] for start, end in sentences.spans(text)]
    is_own = is_own and not detection.speaks_to_model(text)
    kept: list[str] = []
    orders: list[str] = []
    for one, speaks in zip(spoken, meaning.each_speaks(spoken, is_own=is_own), strict=True):
        (orders if speaks or _speaks_by_phrase(one) else kept).append(one)
    return (" ".join(kept), " ".join(orders)) if orders else (text, "")


def is_flagged(turn: Turn) -> bool:
    """Whether the stored turn is flagged; one that the embedder has not judged is judged now."""
    return judged(turn.speaker, turn.content) if turn.flagged is None else turn.flagged


def _shown(content: str) -> str:
    """The part that a context shows; its beginning and its end are two sentences."""
    return shorten(uploads.cut_blocks(content)).replace(TRUNCATED, "\n")


@cached_verdict(_CACHED)
def _cached(shown: str) -> bool:
    return _flagged([shown])[0]


def _flagged(texts: Sequence[str]) -> list[bool]:
    """Whether each text is flagged; all sentences are embedded at once. Errors: EmbeddingError."""
    parts = [meaning.pieces(_shown(text)) for text in texts]
    every = list(dict.fromkeys(piece for own in parts for piece in own))
    scores = dict(zip(every, meaning.scores(every, meaning.learned("turns")).tolist(), strict=True))
    return [any(scores[piece] > 0 for piece in own) or _has_claim(text) for text, own in zip(texts, parts, strict=True)]


def _has_claim(text: str) -> bool:
    """Whether it has a phrase that is no advice. Errors: EmbeddingError."""
    if not detection.speaks_to_model(text):
        return False
    plain = dict.fromkeys(detection.claimed(_CODE.sub(" ", text)))
    in_code = dict.fromkeys(detection.claimed(text)).keys() - plain.keys()
    # More than any advice has.
    if len(plain) + len(in_code) > _MOST_CLAIMS:
        return True
    return any(map(_is_certain, plain)) or _is_meant(plain, _SPARED) or _is_meant(in_code, _SPARED_IN_CODE)


def _speaks_by_phrase(text: str) -> bool:
    try:
        return _has_claim(text)
    except EmbeddingError:
        return detection.speaks_to_model(text)


def _is_certain(claim: FoundClaim) -> bool:
    """Whether the phrase is enough, whatever its sentence means."""
    if not claim.sentence:
        return claim.claim != _EVERYDAY
    return claim.claim in _TO_AN_ADDRESS and any(name in claim.sentence for name in _ADDRESSES)


def _is_meant(claims: Iterable[FoundClaim], spared: float) -> bool:
    sentences = [claim.sentence for claim in claims if claim.sentence]
    return bool((meaning.scores(sentences, meaning.learned("turns")) > spared).any())
