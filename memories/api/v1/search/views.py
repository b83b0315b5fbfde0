"""POST /search."""

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.search.serializers import FoundSerializer, SearchSerializer, found_answer, search_of
from memories.models import Scope
from memories.retrieval import search


class SearchView(Endpoint):
    @operation(
        "search",
        "Find what a person said, and what is remembered of them",
        description="Facts, episodes, turns and sessions, by meaning and by words; without vectors by words alone.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=SearchSerializer,
        answers={200: FoundSerializer},
    )
    def post(self, request: Request) -> Response:
        given = self.body(SearchSerializer)
        found = search.search(tenant=self.tenant, search=search_of(given), now=self.now)
        return Response(found_answer(found))
