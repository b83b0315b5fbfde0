"""/diary: what an agent notes for itself about a person."""

from uuid import UUID

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound, NamedRow
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.diary.serializers import (
    DiaryEntrySerializer,
    DiaryQuery,
    NewDiaryEntrySerializer,
    StoredDiaryEntrySerializer,
)
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.curation import plain
from memories.curation.diary import write_entry
from memories.curation.people.records import person_for_writing
from memories.kinds.diary import DIARY
from memories.models import DiaryEntry, Scope


class DiaryView(Endpoint):
    @operation(
        "listDiary",
        "Read an agent's diary about a person",
        description="The newest entries first. Those of other agents are not among them.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[DiaryQuery],
        answers={200: page_of(DiaryEntrySerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(DiaryQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        rows = DiaryEntry.objects.of(self.tenant, person).present() if person else DiaryEntry.objects.none()
        rows = rows.filter(agent_id=given.get("agent_id") or "").saying(given.get("q", ""))
        rows = selected(rows, DiaryQuery, given)
        if "last" in given:
            newest = DiaryEntrySerializer(rows.order_by("-created_at", "-id")[: given["last"]], many=True).data
            return Response({"next": None, "previous": None, "results": newest})
        return self.listed(rows, DiaryEntrySerializer, given=given)

    @operation(
        "writeDiaryEntry",
        "Add an entry to an agent's diary",
        description="An entry is never changed. A text that speaks to a model answers 409 `review_needed` and says "
        "where; secrets are cut out.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=NewDiaryEntrySerializer,
        answers={201: StoredDiaryEntrySerializer},
        problems=(409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewDiaryEntrySerializer)
        person = person_for_writing(tenant=self.tenant, user_id=given["user_id"], now=self.now)
        self.subjects.add(person.pk)
        noted = write_entry(
            end_user=person,
            agent_id=given.get("agent_id") or "",
            content=given["content"],
            topic=given.get("topic", ""),
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(given.get("stated_by")),
        )
        return Response({**DiaryEntrySerializer(noted.row).data, "redactions": noted.redactions}, status=201)


class DiaryEntryView(Endpoint):
    @operation(
        "deleteDiaryEntry",
        "Delete a diary entry",
        description="It goes to the trash, from which an operator can restore it.",
        scope=Scope.WRITE,
        bound=NamedRow("entry_id", DiaryEntry, "agent_id"),
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, entry_id: UUID) -> Response:
        entry = lookups.found(DiaryEntry.objects.present(), tenant=self.tenant, pk=entry_id)
        plain.delete(DIARY, row_id=entry.pk, actor=self.actor, now=self.now, write_trust=self.write_trust())
        return Response(status=204)


URLS = (path("diary", DiaryView.as_view()), path("diary/<uuid:entry_id>", DiaryEntryView.as_view()))
