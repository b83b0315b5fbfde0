"""The tabs of a person's page, and the frame that they share."""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import within
from memories.admin.site.page import RecordPage
from memories.models import EndUser
from memories.models.ids import parse_uuid

# A context shows all of these memories, so who may see a context must be allowed to see each kind.
MEMORY = ("memories.view_fact", "memories.view_episode", "memories.view_session")


class PersonTab(NamedTuple):
    """A view of a person, with the permissions that it takes besides seeing the person."""

    name: str
    url: str
    label: Promise
    icon: str
    permissions: tuple[str, ...] = ()


TABS = (
    PersonTab("timeline", "admin:memories_enduser_change", _("Timeline"), "timeline"),
    PersonTab("seen", "admin:memories_enduser_seen", _("What an agent sees"), "visibility", MEMORY),
    PersonTab("profile", "admin:memories_enduser_profile_all", _("Profile"), "id_card", ("memories.view_fact",)),
    PersonTab("files", "admin:memories_enduser_files", _("Files"), "folder_open", ("memories.view_memoryfile",)),
    PersonTab("graph", "admin:memories_enduser_graph", _("Graph"), "hub", ("memories.view_graphtriple",)),
    PersonTab("diary", "admin:memories_enduser_diary", _("Diary"), "book_2", ("memories.view_diaryentry",)),
    PersonTab("sessions", "admin:memories_enduser_sessions", _("Sessions"), "forum", ("memories.view_session",)),
)


def tabs_for(has_perm: Callable[[str], bool]) -> list[PersonTab]:
    """Those that somebody with these permissions may open."""
    return [tab for tab in TABS if all(map(has_perm, tab.permissions))]


def person_of_link(request: HttpRequest) -> EndUser | None:
    """The person whose id of ours is `?person=` in the address; the survivor, if that one was merged.

    None without an id, and for a person whom the operator may not see.
    """
    key = parse_uuid(request.GET.get("person", ""))
    if key is None:
        return None
    people = EndUser.objects.select_related("tenant", "merged_into__tenant")
    found: EndUser | None = within(request.user, people).filter(pk=key).first()
    return (found.merged_into or found) if found else None


class PersonViews(RecordPage):
    """A page of people with tabs beside its own."""

    def render_tab(
        self, request: HttpRequest, person: Any, template: str, shown: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        page = RecordPage.show(self, request, person, status=status)
        page.template_name = template
        page.context_data = {**(page.context_data or {}), **shown}
        return page
