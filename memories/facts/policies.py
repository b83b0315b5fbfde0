"""What becomes of a statement, by who makes it: the table of rules.md, 5.13, as data."""

from dataclasses import dataclass
from enum import StrEnum

from memories.models import Road


class Repeated(StrEnum):
    """A live fact has the same text."""

    REINFORCE = "that fact is stated again"
    REPORT = "an error with the id of that fact"
    SKIP = "nothing is stored"
    # A model that proposes: what somebody else is told is nothing new either.
    SKIP_ANY = "nothing is stored, whichever agent the fact is of"


class SameValue(StrEnum):
    """A fact of the same readers gives the key the same value in other words."""

    REINFORCE = "that fact is stated again"
    BINDS = "a binding fact of its own"
    NONE = "keys are not compared"


class Refused(StrEnum):
    """The text, or the key, was rejected or forgotten before."""

    BY_WHOM = "who refused it and who states it decide"
    BY_WHOM_OF_TEXT = "the same, by the text alone"
    ENDS = "the refusal ends"
    USERS_WAITS = "the user's own word waits, nothing else is stored"
    DROP = "nothing is stored"


class Flagged(StrEnum):
    """Its text is flagged, or its trust is not believed."""

    WAITS = "it waits for review"
    WAITS_IF_NEW = "it waits for review, unless it is known"
    DROP = "nothing is stored if its text is flagged"
    SERVED = "it is served"


class Weaker(StrEnum):
    """What it contradicts is protected, of more trust, or surer."""

    WAITS = "it waits beside the fact that it contradicts"
    WAITS_BESIDE = "it waits beside the fact that it names"
    SUPERSEDES = "it takes the place of all but protected facts"
    SUPERSEDES_ALL = "it takes the place of all, protected facts too"
    NONE = "it contradicts nothing"


class Capacity(StrEnum):
    """It would be one active fact too many."""

    NONE = "the next extraction archives the least"
    ERROR = "an error"
    ARCHIVE = "the least is archived at once"


@dataclass(frozen=True)
class Policy:
    """A row of the table. `verb` is that of a new fact's first revision, `superseded` that of what it replaces; `road`:
    how the content policy's log names it.

    `asks_near`: a person is asked whether it repeats a near fact that nobody judged. `reports_dropped`: a statement
    that an operator refused is an error for its caller. `is_heard`: it was said in a conversation, so an agent's is
    compared with the person's own facts, too, whoever reads them, and what waits is related to what it contradicts.
    """

    verb: str
    road: Road
    same_text: Repeated
    same_value: SameValue
    refused: Refused
    flagged: Flagged
    weaker: Weaker
    capacity: Capacity = Capacity.NONE
    asks_near: bool = False
    reports_dropped: bool = False
    is_heard: bool = False
    superseded: str = "supersede"

    @property
    def reports_forbidden(self) -> bool:
        """What the content policy forbids is an error for its caller; else nothing is stored."""
        return self.same_text == Repeated.REPORT

    @property
    def waits(self) -> bool:
        """Whether what is flagged or not believed is reviewed before it is served."""
        return self.flagged in (Flagged.WAITS, Flagged.WAITS_IF_NEW)

    @property
    def compares_keys(self) -> bool:
        return self.same_value != SameValue.NONE


EXTRACTION = Policy(
    verb="extract",
    road=Road.EXTRACTION,
    same_text=Repeated.REINFORCE,
    same_value=SameValue.REINFORCE,
    refused=Refused.USERS_WAITS,
    flagged=Flagged.WAITS_IF_NEW,
    weaker=Weaker.WAITS,
    capacity=Capacity.ARCHIVE,
    asks_near=True,
    is_heard=True,
)
KEY = Policy(
    verb="add",
    road=Road.STATEMENT,
    same_text=Repeated.REPORT,
    same_value=SameValue.REINFORCE,
    refused=Refused.BY_WHOM,
    flagged=Flagged.WAITS,
    weaker=Weaker.WAITS,
    asks_near=True,
    reports_dropped=True,
)
OPERATOR = Policy(
    verb="add",
    road=Road.STATEMENT,
    same_text=Repeated.REPORT,
    same_value=SameValue.BINDS,
    refused=Refused.ENDS,
    flagged=Flagged.SERVED,
    weaker=Weaker.SUPERSEDES,
    asks_near=True,
)
DOCUMENT = Policy(
    verb="import",
    road=Road.DOCUMENT,
    same_text=Repeated.SKIP,
    same_value=SameValue.NONE,
    refused=Refused.BY_WHOM_OF_TEXT,
    flagged=Flagged.WAITS,
    weaker=Weaker.WAITS_BESIDE,
    capacity=Capacity.ERROR,
)
REFLECTION = Policy(
    verb="reflect",
    road=Road.UPKEEP,
    same_text=Repeated.SKIP_ANY,
    same_value=SameValue.NONE,
    refused=Refused.DROP,
    flagged=Flagged.DROP,
    weaker=Weaker.NONE,
)
UPKEEP = Policy(
    verb="merge",
    road=Road.UPKEEP,
    same_text=Repeated.SKIP_ANY,
    same_value=SameValue.NONE,
    refused=Refused.DROP,
    flagged=Flagged.DROP,
    weaker=Weaker.NONE,
    superseded="merge",
)
# An operator lets a fact that exists be served, or chooses it.
APPROVAL = Policy(
    verb="approve",
    road=Road.STATEMENT,
    same_text=Repeated.REPORT,
    same_value=SameValue.BINDS,
    refused=Refused.ENDS,
    flagged=Flagged.SERVED,
    weaker=Weaker.SUPERSEDES_ALL,
)
