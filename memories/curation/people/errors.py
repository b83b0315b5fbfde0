"""What keeps people from being changed, as leaves of the tree of `memories.exceptions` below Conflict (409)."""

from memories.exceptions import Conflict


class PersonMerged(Conflict):
    """The person was merged into another one at this moment; send it again, and it reaches that one."""

    code = "merged"
    retryable = True


class PersonExists(Conflict):
    """Another end user of the tenant has this id, or it leads to one."""

    code = "person_exists"


class PeopleBusy(Conflict):
    """Somebody is writing to one of the two people at this moment. Nothing was changed: try again."""

    code = "people_busy"
    retryable = True
