"""The tab of a person that draws their graph as it was on a day, and the data of the drawing."""

import uuid
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from memories.admin.graph.as_of import day_of, end_of
from memories.admin.graph.pages import name_of, state_of, words_of
from memories.admin.people.views import PersonViews
from memories.admin.site.page import address, require, url_of
from memories.graph import drawing, naming, reading
from memories.graph.drawing import Drawing, DrawnTriple
from memories.invisible import strip_invisible
from memories.models import EndUser, GraphEntity, GraphTriple, TripleStatus
from memories.models.ids import parse_uuid

# Query parameter: the entity that is drawn with its neighbours alone.
FOCUS = "focus"
LISTED = 50
# Entities that are offered for a drawing of their own.
OFFERED = 12
_LONGEST_SPAN = timedelta(days=366 * 120)


class GraphViews(PersonViews):
    """A page of people with the tab of their graph."""

    @address("<uuid:object_id>/graph/", "graph")
    def graph_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The drawing is made by a script; without it the page is a list. A script fetches the list alone."""
        person, focus, day = self._asked(request, object_id)
        rows = reading.of_person(person).exclude(status=TripleStatus.TRASHED).held_at(end_of(day))
        if focus:
            rows = reading.touching(rows, naming.names_of(focus))
        held = list(reading.with_names(rows).select_related("end_user").order_by("-dated_at", "-id")[: LISTED + 1])
        shown: dict[str, Any] = {
            "tab": "graph",
            "day": day,
            "moment": end_of(day),
            "today": timezone.localdate(),
            "focus": focus,
            "focus_name": name_of(focus, person) if focus else "",
            "held": [(one, words_of(one), state_of(one)) for one in held[:LISTED]],
            "held_count": rows.count() if len(held) > LISTED else len(held),
        }
        if request.headers.get("X-Fragment") == "holds":
            return self.render_tab(request, person, "memories/person_graph_list.html", shown)
        drawn = drawing.draw(person, moment=end_of(day), focus=focus.pk if focus else None)
        first, last = _span(drawn, day)
        offered = [(one, name_of(one, person), drawn.degrees.get(one.pk, 0)) for one in drawn.entities[:OFFERED]]
        shown |= {"drawn": drawn, "first": first, "last": last, "offered": offered}
        return self.render_tab(request, person, "memories/person_graph.html", shown)

    @address("<uuid:object_id>/graph/drawing/", "graph_drawing")
    def graph_drawing(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The entities and triples of the drawing. Their texts are data, which the script never makes HTML of."""
        person, focus, day = self._asked(request, object_id)
        drawn = drawing.draw(person, moment=end_of(day), focus=focus.pk if focus else None)
        return JsonResponse(
            {
                "entities": [_entity(one, person) for one in drawn.entities],
                "triples": [_triple(one) for one in drawn.triples],
                "is_cut": drawn.is_cut,
                "all_entities": drawn.all_entities,
                "all_triples": drawn.all_triples,
            }
        )

    def _asked(self, request: HttpRequest, object_id: uuid.UUID) -> tuple[EndUser, GraphEntity | None, date]:
        """The person, the entity in focus, and the day. Errors: PermissionDenied, Http404."""
        person = self.find(request, str(object_id), may_change=False)
        require(request, "memories.view_graphtriple")
        return person, _focus_of(request, person), day_of(request)


def _focus_of(request: HttpRequest, person: EndUser) -> GraphEntity | None:
    """The person's entity that the address names; None for one of somebody else, too."""
    key = parse_uuid(request.GET.get(FOCUS, ""))
    if key is None:
        return None
    rows = GraphEntity.objects.filter(tenant=person.tenant_id, end_user=person)
    found = rows.select_related("merged_into").filter(pk=key).first()
    return (found.merged_into or found) if found else None


def _span(drawn: Drawing, day: date) -> tuple[date, date]:
    """From the first day of the graph to its last one, with today and the day that is shown."""
    today = timezone.localdate()
    days = {timezone.localdate(one) for one in drawn.moments}
    near = {one for one in days if abs(one - today) <= _LONGEST_SPAN} | {today, day}
    return min(near), max(near)


def _entity(entity: GraphEntity, person: EndUser) -> dict[str, Any]:
    return {
        "id": str(entity.pk),
        "name": name_of(entity, person),
        "type": strip_invisible(entity.type),
        "is_person": naming.is_person(entity),
        "page": url_of(entity),
    }


def _triple(row: DrawnTriple) -> dict[str, Any]:
    """Its days are those of the operator's time zone, as the slider's."""
    began, ended = (timezone.localdate(one).isoformat() if one else "" for one in (row.valid_from, row.valid_to))
    return {
        "id": str(row.id),
        "subject": str(row.subject),
        "object": str(row.object),
        "predicate": strip_invisible(row.predicate.replace("_", " ")),
        "from": began,
        "until": ended,
        "waits": row.status == TripleStatus.PENDING,
        "page": url_of(GraphTriple(pk=row.id)),
    }
