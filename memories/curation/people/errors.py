"""What keeps people from being changed, as leaves of the tree of `memories.exceptions` below Conflict (409)."""

from memories.exceptions import Conflict


class PersonMerged(Conflict):
    """The person has just been merged into another one. Send the request again; it will reach that person."""

    code = "merged"
    retryable = True


class PersonExists(Conflict):
    """Another end user of the tenant has this id, or has it as an alias."""

    code = "person_exists"


class PeopleBusy(Conflict):
    """One of the two people is being changed at the moment. Nothing was changed. Try again."""

    code = "people_busy"
    retryable = True
