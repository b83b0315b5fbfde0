"""The views of one person: which there are, and the frame that all of them stand in."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin.page import RecordPage

# What a context is made of: who sees what an agent sees sees all of it.
MEMORY = ("memories.view_fact", "memories.view_episode", "memories.view_session")


class Tab(NamedTuple):
    """A view of a person, with the permissions that it takes besides seeing the person."""

    name: str
    url: str
    label: Promise
    icon: str
    permissions: tuple[str, ...] = ()


TABS = (
    Tab("timeline", "admin:memories_enduser_change", _("Timeline"), "timeline"),
    Tab("seen", "admin:memories_enduser_seen", _("What an agent sees now"), "visibility", MEMORY),
    Tab("profile", "admin:memories_enduser_profile_all", _("Profile"), "id_card", ("memories.view_fact",)),
    Tab("sessions", "admin:memories_enduser_sessions", _("Sessions"), "forum", ("memories.view_session",)),
)


def tabs(may: Callable[[str], bool]) -> list[Tab]:
    """Those that somebody with these permissions may open."""
    return [tab for tab in TABS if all(map(may, tab.permissions))]


class PersonViews(RecordPage):
    """A page of people with views beside its own."""

    def framed(
        self, request: HttpRequest, person: Any, template: str, shown: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        """A view of the person in the frame."""
        page = RecordPage.show(self, request, person, status=status)
        page.template_name = template
        page.context_data = {**(page.context_data or {}), **shown}
        return page
