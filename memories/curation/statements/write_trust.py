"""Whose words a key writes: those that it writes as, lowered and never raised by what the request states."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from memories.conf import Rules
from memories.models import Fact, Source, Status, Trust, WritesAs
from memories.trust import SOURCE_OF, is_believed, rank

STATED, IMPORTED = "api", "import"


class StatedBy(StrEnum):
    """Who stated what a key writes, according to the request; an import is a record of another system."""

    USER = "user"
    AGENT = "agent"
    TOOL = "tool"
    IMPORT = "import"


_TRUST = {StatedBy.USER: Trust.USER, StatedBy.AGENT: Trust.ASSISTANT, StatedBy.TOOL: Trust.TOOL}


@dataclass(frozen=True)
class WriteTrust:
    """The trust of what is written, and whether it is imported from another system."""

    trust: Trust = Trust.USER
    imports: bool = False

    @property
    def extractor(self) -> str:
        return IMPORTED if self.imports else STATED

    def lowered(self, trusts: Iterable[Trust]) -> "WriteTrust":
        """The same with the lowest of these trusts and its own."""
        return replace(self, trust=min((self.trust, *trusts), key=rank))

    def is_believed(self, rules: Rules) -> bool:
        """Whether what it states is served before an operator has reviewed it."""
        return is_believed(self.trust, trusts_assistant=rules.trust_assistant, is_import=self.imports)

    def source(self, stated: str) -> Source:
        """The stated source; only the user's own word can make it the user's explicit word."""
        of_trust = SOURCE_OF[self.trust]
        if not stated or (stated == Source.EXPLICIT and self.trust != Trust.USER):
            return of_trust
        return Source(stated)


AS_USER = WriteTrust()


def write_trust_of(*, writes_as: str, stated_by: str | None = None) -> WriteTrust:
    """The writer of a key that writes as `writes_as` (a WritesAs); `stated_by` can only lower it."""
    own = Trust.USER if writes_as == WritesAs.USER else Trust.ASSISTANT
    if stated_by is None:
        return WriteTrust(own)
    return WriteTrust(own, imports=stated_by == StatedBy.IMPORT).lowered([_TRUST.get(StatedBy(stated_by), own)])


def may_change(fact: Fact, write_trust: WriteTrust, rules: Rules) -> bool:
    """Whether this writer may change the fact in place.

    It may not change a fact of more trust, nor an active one when the writer is not believed.
    """
    outranked = rank(write_trust.trust) < rank(fact.trust)
    return not outranked and (fact.status != Status.ACTIVE or write_trust.is_believed(rules))
