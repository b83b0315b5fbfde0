"""What a newcomer is to the known facts that lie near it: nearness only proposes, a judgement decides."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the newcomer is to the known fact; not_judged: nobody was there to say."""

    SAME = "same"
    REFINES = "refines"
    CONTRADICTS = "contradicts"
    UNRELATED = "unrelated"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class Near:
    """A known fact near a candidate: `content_hash` of the text that was compared, cosine, and whether its text was
    refused (rejected or forgotten; those are never judged)."""

    fact_id: uuid.UUID
    content_hash: bytes
    similarity: float
    verdict: Verdict
    refused: bool


# By Accepted.index, nearest first: at most three active facts, and the nearest refused one.
Verdicts = Mapping[int, Sequence[Near]]
