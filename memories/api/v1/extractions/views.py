"""/extractions: the runs that turn conversations into facts."""

import uuid

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.extractions.serializers import ExtractionSerializer, ExtractionsQuery, RetrySerializer
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.api.v1.turns.serializers import extraction_answer
from memories.curation.retries import retry_extraction
from memories.models import EndUser, Scope
from memories.queue import session_queue


class ExtractionsView(Endpoint):
    @operation(
        "listExtractions",
        "List extraction runs, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[ExtractionsQuery],
        answers={200: page_of(ExtractionSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(ExtractionsQuery)
        rows = lookups.extractions(self.tenant)
        if "user_id" in given:
            rows = rows.filter(end_user__in=EndUser.objects.called(self.tenant, given["user_id"]))
        if self.caller.agent_id:
            rows = rows.filter(session__agent_id=self.caller.agent_id)
        rows = selected(rows, ExtractionsQuery, given)
        return self.listed(rows, ExtractionSerializer, given=given, ordering=["-started_at", "-id"])


class ExtractionView(Endpoint):
    @operation(
        "getExtraction",
        "Get an extraction run: range, outcome, refusals, tokens; no content",
        scope=Scope.READ,
        bound=Bound.EXTRACTION,
        answers={200: ExtractionSerializer},
        problems=(404,),
    )
    def get(self, request: Request, run_id: uuid.UUID) -> Response:
        return Response(self.shown(lookups.extraction(tenant=self.tenant, run_id=run_id), ExtractionSerializer))


class ExtractionRetryView(Endpoint):
    @operation(
        "retryExtraction",
        "Try a failed or parked batch again now",
        scope=Scope.WRITE,
        bound=Bound.EXTRACTION,
        answers={202: RetrySerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request, run_id: uuid.UUID) -> Response:
        run = lookups.extraction(tenant=self.tenant, run_id=run_id)
        self.subjects.add(run.end_user_id)
        retry_extraction(run=run, actor=self.actor, now=self.now)
        session = lookups.session(tenant=self.tenant, session_id=run.session_id)
        status = session_queue.status_of(session.queue, now=self.now)
        return Response({"extraction": extraction_answer(status)}, status=202)
