"""LangGraph's store on a hub: what an agent keeps under namespaces and keys.

    from memoryhub_client import MemoryHub
    from memoryhub_client.langgraph import HubStore

    store = HubStore(MemoryHub(key))
    store.put(("memories", "alice"), "tea", {"text": "Alice drinks green tea."})
    store.search(("memories", "alice"), query="What does she drink?")

A batch is one request. The hub embeds values itself: `index` names only the fields. Items whose time to live is over
are never answered.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from memoryhub_client.client import AsyncMemoryHub, MemoryHub
from memoryhub_client.models import Match, StoreAnswer, StoreItem, StoreOperation


class HubStore(BaseStore):
    """A store on a hub: `hub` answers what is called, `async_hub` what is awaited.

    With one of them alone the other kind of method raises RuntimeError. `fields` are the paths of values that are
    embedded unless a put says otherwise, by default all of a value. `ttl` is what a put without one gets, in minutes,
    and whether reads let it begin anew.
    """

    __slots__ = ("_async_hub", "_fields", "_hub", "ttl_config")
    supports_ttl = True

    def __init__(
        self,
        hub: MemoryHub | None = None,
        *,
        async_hub: AsyncMemoryHub | None = None,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        if hub is None and async_hub is None:
            raise ValueError("A HubStore needs a MemoryHub, an AsyncMemoryHub, or both.")
        self._hub, self._async_hub = hub, async_hub
        self._fields = None if fields is None else list(fields)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """The answers in the order of the operations, in one request."""
        wanted = _checked(ops)
        if not wanted:
            return []
        if self._hub is None:
            raise RuntimeError("This HubStore has an AsyncMemoryHub alone: await its methods.")
        answers = self._hub.batch_store(operations=self._written(wanted)).results
        return [_result(op, answer) for op, answer in zip(wanted, answers, strict=True)]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`."""
        wanted = _checked(ops)
        if not wanted:
            return []
        if self._async_hub is None:
            raise RuntimeError("This HubStore has a MemoryHub alone: give it an AsyncMemoryHub, too.")
        found = await self._async_hub.batch_store(operations=self._written(wanted))
        return [_result(op, answer) for op, answer in zip(wanted, found.results, strict=True)]

    def _written(self, ops: Sequence[Op]) -> list[StoreOperation]:
        return [_operation(op, self._fields) for op in ops]


def _checked(ops: Iterable[Op]) -> list[Op]:
    wanted = list(ops)
    # The hub keeps a namespace as one text, so that a label with a period would lead elsewhere.
    for op in wanted:
        validate_op_namespace(op)
    return wanted


def _operation(op: Op, fields: list[str] | None) -> StoreOperation:
    if isinstance(op, GetOp):
        return {"op": "get", "namespace": list(op.namespace), "key": op.key, "refresh_ttl": op.refresh_ttl}
    if isinstance(op, SearchOp):
        return {
            "op": "search",
            "namespace": list(op.namespace_prefix),
            "filter": op.filter,
            "query": op.query,
            "limit": op.limit,
            "offset": op.offset,
            "refresh_ttl": op.refresh_ttl,
        }
    if isinstance(op, ListNamespacesOp):
        conditions: list[Match] = [
            {"match_type": one.match_type, "path": list(one.path)} for one in op.match_conditions or ()
        ]
        return {
            "op": "list_namespaces",
            "match_conditions": conditions,
            "max_depth": op.max_depth,
            "limit": op.limit,
            "offset": op.offset,
        }
    if isinstance(op, PutOp):
        named: StoreOperation = {"op": "delete", "namespace": list(op.namespace), "key": op.key}
        if op.value is None:
            return named
        index: Any = fields if op.index is None else op.index
        return {**named, "op": "put", "value": dict(op.value), "index": index, "ttl": op.ttl}
    raise ValueError(f"Unknown operation type: {type(op)}")


def _result(op: Op, answer: StoreAnswer) -> Result:
    if isinstance(op, GetOp):
        return None if answer.item is None else Item(**_members(answer.item))
    if isinstance(op, SearchOp):
        return [SearchItem(**_members(one), score=one.score) for one in answer.items or ()]
    if isinstance(op, ListNamespacesOp):
        return [tuple(labels) for labels in answer.namespaces or ()]
    return None


def _members(item: StoreItem) -> dict[str, Any]:
    return {
        "namespace": tuple(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
