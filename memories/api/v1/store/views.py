"""/store: values under namespaces and keys."""

import json
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiResponse
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.parsers import StrictJSONParser, decode
from memories.api.schema import operation
from memories.api.shapes import MOST_VALUES
from memories.api.v1.store.serializers import (
    BatchSerializer,
    FoundStoreItemsSerializer,
    ItemName,
    ItemNameQuery,
    ItemQuery,
    NamespacesSerializer,
    PutItemSerializer,
    SearchItemsSerializer,
    StoreAnswersSerializer,
    StoreNamespacesSerializer,
    operation_of,
    search_of,
    write_of,
)
from memories.exceptions import InvalidInput
from memories.models import Scope
from memories.store import namespaces, operations, reading, writing
from memories.store.namespaces import BadNamespace
from memories.store.reading import FoundItem, Lookup, NamespaceQuery
from memories.store.viewers import StoreViewer
from memories.store.writing import Write

_NAMED = ("namespace", "namespace_prefix", "prefix", "suffix", "path")


class StoreParser(StrictJSONParser):
    """Says of a label with a NUL what LangGraph says of it."""

    def decode(self, body: bytes, *, most: int = MOST_VALUES) -> dict[str, Any]:
        try:
            return decode(body, most=most)
        except InvalidInput as error:
            [fault] = error.faults
            *steps, last = fault.pointer.split("/")
            if fault.code != "nul" or not steps or steps[-1] not in _NAMED or not last.isdigit():
                raise
            labels = json.loads(body.decode("utf-8-sig"))
            for step in steps[1:]:
                labels = labels[int(step)] if isinstance(labels, list) else labels[step]
            try:
                namespaces.check(labels)
            except BadNamespace as bad:
                raise InvalidInput.at(fault.pointer, str(bad), code="namespace") from bad
            raise


class StoreEndpoint(Endpoint):
    parser_classes = (StoreParser,)

    @property
    def viewer(self) -> StoreViewer:
        return StoreViewer(self.tenant, self.caller.user_id, self.caller.key.pk)

    def write(self, one: Write) -> Response:
        writing.write([one], tenant=self.tenant, viewer=self.viewer, now=self.now)
        return Response(status=204)


class ItemsView(StoreEndpoint):
    @operation(
        "getStoreItem",
        "Get an item of the store",
        description="An item that does not exist, or has expired, is `null`, as LangGraph's server answers it.",
        scope=Scope.READ,
        bound=Bound.STORE,
        parameters=[ItemQuery],
        answers={
            200: OpenApiResponse(
                {"oneOf": [{"$ref": "#/components/schemas/StoreItem"}, {"type": "null"}]}, description="The item."
            )
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        given = self.query(ItemQuery)
        wanted = Lookup(given["namespace"], given["key"], refresh=given["refresh_ttl"])
        [found] = reading.look_up([wanted], self.viewer)
        # REST framework writes nothing for None, and a client reads JSON.
        return Response(shown(found)) if found else HttpResponse(b"null", content_type="application/json")

    @operation(
        "putStoreItem",
        "Write an item of the store, in place of what is there",
        description="Secrets are replaced by marks, and invisible characters go. A value that speaks to a model "
        "answers 409 `review_needed`.",
        scope=Scope.WRITE,
        bound=Bound.STORE,
        request=PutItemSerializer,
        answers={204: None},
        problems=(409, 410, 423),
    )
    def put(self, request: Request) -> Response:
        return self.write(write_of(self.body(PutItemSerializer)))

    @operation(
        "deleteStoreItem",
        "Delete an item of the store for good",
        description="204 also where there is none. As LangGraph's SDK sends it, the body may name the item instead: "
        '`{"namespace": ["a", "b"], "key": "k"}`.',
        scope=Scope.WRITE,
        bound=Bound.STORE,
        parameters=[ItemNameQuery],
        answers={204: None},
        problems=(423,),
    )
    def delete(self, request: Request) -> Response:
        named = self.body(ItemName) if request.data else self.query(ItemNameQuery)
        return self.write(Write(named["namespace"], named["key"]))


class ItemsSearchView(StoreEndpoint):
    @operation(
        "searchStoreItems",
        "Find items of the store",
        description="With a query by meaning, exactly ranked; what has no vector comes last.",
        scope=Scope.READ,
        bound=Bound.STORE,
        request=SearchItemsSerializer,
        answers={200: FoundStoreItemsSerializer},
    )
    def post(self, request: Request) -> Response:
        found = reading.search(search_of(self.body(SearchItemsSerializer)), self.viewer)
        return Response({"items": [shown(one, scored=True) for one in found]})


class NamespacesView(StoreEndpoint):
    @operation(
        "listStoreNamespaces",
        "List namespaces of the store, sorted",
        scope=Scope.READ,
        bound=Bound.STORE,
        request=NamespacesSerializer,
        answers={200: StoreNamespacesSerializer},
    )
    def post(self, request: Request) -> Response:
        given = self.body(NamespacesSerializer)
        listing = NamespaceQuery(
            prefixes=(given["prefix"],) if given.get("prefix") else (),
            suffixes=(given["suffix"],) if given.get("suffix") else (),
            max_depth=given.get("max_depth"),
            limit=given["limit"],
            offset=given["offset"],
        )
        return Response({"namespaces": reading.list_namespaces(listing, self.viewer)})


class BatchView(StoreEndpoint):
    @operation(
        "batchStore",
        "Do many operations of the store in one request",
        description=(
            "As LangGraph's stores answer a batch: first the reads, which see what was there before, then the writes, "
            "the last for each key, all or none. The results are in the order of the operations. Writes need the scope "
            "`write`, too."
        ),
        scope=Scope.READ,
        bound=Bound.STORE,
        request=BatchSerializer,
        answers={200: StoreAnswersSerializer},
        problems=(409, 410, 423),
    )
    def post(self, request: Request) -> Response:
        given = self.body(BatchSerializer)["operations"]
        wanted = [operation_of(operation, f"/operations/{at}") for at, operation in enumerate(given)]
        if any(isinstance(operation, Write) for operation in wanted) and Scope.WRITE not in self.caller.key.scopes:
            raise PermissionDenied(f"This key lacks the scope '{Scope.WRITE}'.", code="missing_scope")
        results = operations.run(wanted, tenant=self.tenant, viewer=self.viewer, now=self.now)
        answers = [
            {
                "item": result.item and shown(result.item),
                "items": None if result.items is None else [shown(item, scored=True) for item in result.items],
                "namespaces": result.namespaces,
            }
            for result in results
        ]
        return Response({"results": answers})


def shown(found: FoundItem, *, scored: bool = False) -> dict[str, Any]:
    """An item in the shape of StoreItemSerializer, or of FoundStoreItemSerializer; by hand, for a search shows many."""
    item = found._asdict()
    score = item.pop("score")
    return {**item, "score": score} if scored else item
