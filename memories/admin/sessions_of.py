"""The sessions of a person and the runs over them, as a view of the person."""

import uuid
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from memories.admin.person_views import PersonViews
from memories.models import ExtractionRun

SHOWN = 25


class SessionsOfPerson(PersonViews):
    """A page of people with the newest sessions of each."""

    def sessions_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        person = self.find(request, str(object_id), may_change=False)
        if not request.user.has_perm("memories.view_session"):
            raise PermissionDenied
        sessions = person.sessions.select_related("queue", "tenant").order_by("-last_turn_at")
        shown: dict[str, Any] = {"tab": "sessions", "sessions": sessions[:SHOWN]}
        if request.user.has_perm("memories.view_extractionrun"):
            shown["runs"] = ExtractionRun.objects.filter(end_user=person).select_related("end_user")[:SHOWN]
        return self.framed(request, person, "memories/person_sessions.html", shown)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.sessions_view)
        return [path("<uuid:object_id>/sessions/", view, name="memories_enduser_sessions"), *super().get_urls()]
