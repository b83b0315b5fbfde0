"""What keeps a privacy case from a step, as leaves of the tree of `memories.exceptions` below Conflict (409)."""

from memories.exceptions import Conflict


class CaseClosed(Conflict):
    """The case is closed. Open another case."""

    code = "case_closed"


class CaseUnverified(Conflict):
    """The requester's identity is not verified. Verify it first."""

    code = "case_unverified"


class CaseHeld(Conflict):
    """The case is on hold. Release it first."""

    code = "case_held"


class CaseElsewhereHeld(Conflict):
    """Another case of this person is on hold, and its data must not be erased. Release that hold first."""

    code = "case_elsewhere_held"


class CaseElsewhereErased(Conflict):
    """Another case is erasing this person, so a hold on this case would protect nothing. Put the other case on hold
    if its run has not started."""

    code = "case_elsewhere_erased"


class CaseBegun(Conflict):
    """The run has started and cannot be stopped. Wait until it ends."""

    code = "case_begun"


class CaseStepOutOfOrder(Conflict):
    """This step is not possible now. See the case for its next step."""

    code = "case_state"


class CaseStepUnknown(Conflict):
    """A case of this type has no such step."""

    code = "case_type"


class CaseExtended(Conflict):
    """The case was already extended. A case can be extended only once."""

    code = "case_extended"


class CaseSamePerson(Conflict):
    """An erasure needs two people. Whoever opened the case cannot approve it; if a key opened it, whoever verified
    the identity cannot approve it."""

    code = "case_same_person"


class CaseOwnAccount(Conflict):
    """An erasure needs two people. An account that the first person created, or set the password of, within the last
    24 hours does not count as a second person. Ask somebody else to approve it."""

    code = "case_own_account"


class CaseNeedsOperator(Conflict):
    """An API key can open and read a case. All other steps need an operator."""

    code = "case_needs_operator"
