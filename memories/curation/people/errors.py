"""What keeps people from being changed, or their own page from being shown: leaves of the tree of
`memories.exceptions`, most of them below Conflict (409)."""

from memories.exceptions import Conflict, NotFound


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


class PageOff(Conflict):
    """The page for the person is switched off. An operator switches it on in the settings of the tenant."""

    code = "page_off"


class PageLinkUnknown(NotFound):
    """This link is not complete, or is not known here. Open the page from the application once more."""


class PageLinkUsed(Conflict):
    """This link was already used. Each link opens the page once: ask the application for a new one."""

    code = "link_used"
    status = 410


class PageLinkExpired(Conflict):
    """This link was not opened in time. Ask the application for a new one."""

    code = "link_expired"
    status = 410


class PageLinkOver(Conflict):
    """This page is closed, because its time is over or something about your account has changed. Open it from the
    application once more."""

    code = "link_over"
    status = 410
