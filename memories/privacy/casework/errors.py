"""What keeps a privacy case from a step, as leaves of the tree of `memories.exceptions` below Conflict (409)."""

from memories.exceptions import Conflict


class CaseClosed(Conflict):
    """The case is completed or refused: nothing more happens in it. Open another one."""

    code = "case_closed"


class CaseUnverified(Conflict):
    """Nobody has made sure who asks: check the identity first."""

    code = "case_unverified"


class CaseHeld(Conflict):
    """The case is on hold: release it first."""

    code = "case_held"


class CaseElsewhereHeld(Conflict):
    """Another case of this person is on hold: what it keeps must not be erased. Release that one first."""

    code = "case_elsewhere_held"


class CaseElsewhereErased(Conflict):
    """Another case is erasing this person, and a hold of this one would keep nothing: hold that one, if its run has not
    begun."""

    code = "case_elsewhere_erased"


class CaseBegun(Conflict):
    """The run has begun and cannot be called off: let it come to its end."""

    code = "case_begun"


class CaseStepOutOfOrder(Conflict):
    """This is not the case's next step: look at what can be done now."""

    code = "case_state"


class CaseStepUnknown(Conflict):
    """A case of this type has no such step."""

    code = "case_type"


class CaseExtended(Conflict):
    """The case was extended before, and can be only once."""

    code = "case_extended"


class CaseSamePerson(Conflict):
    """An erasure takes two people: somebody else has to approve it than who opened it or, of a key's case, checked the
    identity."""

    code = "case_same_person"


class CaseOwnAccount(Conflict):
    """An erasure takes two people: an account that the first of them made, or gave a password, within the last 24 hours
    is not another person's. Let somebody else approve it."""

    code = "case_own_account"


class CaseNeedsOperator(Conflict):
    """A key can open a case and read it: all other steps take an operator."""

    code = "case_needs_operator"
