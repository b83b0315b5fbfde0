"""What the store can be asked: the operations of LangGraph's stores, and a batch of them.

A batch is answered as PostgresStore answers it: first the reads, which see what was there before; then the writes, of
which the last one for each key counts, in one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memories.models import Tenant
from memories.store import reading, writing
from memories.store.reading import FoundItem, Lookup, NamespaceQuery, Search
from memories.store.viewers import StoreViewer
from memories.store.writing import Write

Operation = Lookup | Search | NamespaceQuery | Write


@dataclass
class OperationResult:
    """What an operation is answered; of a write nothing."""

    item: FoundItem | None = None
    items: list[FoundItem] | None = None
    namespaces: list[list[str]] | None = None


def run(
    operations: Sequence[Operation], *, tenant: Tenant, viewer: StoreViewer, now: datetime
) -> list[OperationResult]:
    """The answers, in the order of the operations. Errors: those of writing.write() and reading.search()."""
    answers = [OperationResult() for _ in operations]
    lookups = [(at, one) for at, one in enumerate(operations) if isinstance(one, Lookup)]
    for (at, _), found in zip(lookups, reading.look_up([one for _, one in lookups], viewer), strict=True):
        answers[at].item = found
    for at, one in enumerate(operations):
        if isinstance(one, Search):
            answers[at].items = reading.search(one, viewer)
        elif isinstance(one, NamespaceQuery):
            answers[at].namespaces = reading.list_namespaces(one, viewer)
    writes = [one for one in operations if isinstance(one, Write)]
    if writes:
        writing.write(writes, tenant=tenant, viewer=viewer, now=now)
    return answers
