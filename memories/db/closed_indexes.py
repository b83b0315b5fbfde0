"""Look-ups by indexes that row level security closes: GIN indexes of arrays, for `tags @>` and the like.

PostgreSQL asks an operator that it does not know as leakproof only after the policy. So it reads all rows of the
tenant, or of every tenant, instead of the few that the index names.

What is looked up here is ids alone, behind no policy, of the one tenant that the caller works for anyway. The rows
themselves are read by these ids behind the policy: whatever a condition here forgets, nobody is shown another tenant's
row. Without row level security nothing is looked up: the condition itself is as fast.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from memories.db import tenancy
from memories.db.tenancy import Policies

# Ids of one look-up. What more rows meet is no rare value: a list finds a page of them soon without the index.
MOST = 1_000


def opened(condition: Q, rows: QuerySet[Any], *, tenant_id: uuid.UUID, most: int | None = MOST) -> Q:
    """The condition, and the ids of those of `rows` of the tenant that meet it now, if policies close its index.

    What meets it later is not among them, and what no longer meets it is not found. More ids than `most` are left out:
    then it is the condition alone. Errors: PermissionError for another tenant than the caller's.
    """
    if not _is_closed():
        return condition
    with of_tenant(tenant_id):
        found = rows.filter(condition, tenant=tenant_id).order_by().values_list("pk", flat=True)
        ids = list(found if most is None else found[: most + 1])
    return condition if most is not None and len(ids) > most else condition & Q(pk__in=ids)


@contextmanager
def of_tenant(tenant_id: uuid.UUID) -> Iterator[None]:
    """Statements of the block use all indexes. Each names this tenant and reads no more than ids.

    Errors: PermissionError for another tenant than the caller's.
    """
    said = tenancy.current()
    if not _is_closed() or said is None:
        # Nobody has said for whom: the policies show nothing, here as everywhere.
        yield
        return
    if not _includes(said, tenant_id):
        raise PermissionError("A look-up is for the tenant of the work that it is part of.")
    with tenancy.everything():
        yield


def _is_closed() -> bool:
    backend: Any = connection
    # Of our backend: what tells the server the tenants of a statement. None: no policies.
    return backend.sent is not None


def _includes(said: tenancy.Tenancy, tenant_id: uuid.UUID) -> bool:
    if said.policies is Policies.ALL:
        return True
    return str(tenant_id) in said.tenants.strip("{}").split(",")
