"""Tenancy: the tenants whose rows the database shows a statement, whatever its conditions say.

Whoever works for a key, a tenant or an operator says so around the work. Where row level security is on, the database
backend (memoryhub/database/) tells the server so with each statement, for its transaction alone, and the policies
(memories/management/policies.py) show nothing else. Where nobody has said, no row of a tenant is shown, unless the
process is one whose work spans tenants.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import _GeneratorContextManager, contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import NamedTuple

ROLES_LACKING = (
    "Row level security is on, and the role of DATABASE_URL cannot take the roles of the policies: run manage.py "
    "migrate with MEMORYHUB_OWNER_URL and the same MEMORYHUB_ROW_SECURITY."
)
# Of a block of statements, or of a function that it decorates.
Block = _GeneratorContextManager[None]


class Policies(StrEnum):
    """Whose rows the policies show. The value ends the name of the role that they are for."""

    ONE = ""
    SEVERAL = "_several"
    ALL = "_all"


class Tenancy(NamedTuple):
    """Which policies apply, and the tenants as they read them."""

    policies: Policies
    tenants: str = ""


NOTHING, EVERYTHING = Tenancy(Policies.ONE), Tenancy(Policies.ALL)
# The process's own, where nobody has said; None in a block is nobody, for a statement that goes alone.
_UNSAID = Tenancy(Policies.ONE, "unsaid")
_current: ContextVar[Tenancy | None] = ContextVar("tenancy", default=_UNSAID)
_of_process: Tenancy | None = None


def current() -> Tenancy | None:
    """The tenancy of statements here; None: nobody has said."""
    found = _current.get()
    return _of_process if found is _UNSAID else found


def as_a_sweeper() -> None:
    """This process and its children look for the work of all tenants: where nobody has said, they see all."""
    global _of_process  # noqa: PLW0603
    _of_process = EVERYTHING


@contextmanager
def within(tenancy: Tenancy | None) -> Iterator[None]:
    """Statements of the block have this tenancy. set_current() in the block ends with it, too."""
    token = _current.set(tenancy)
    try:
        yield
    finally:
        _current.reset(token)


def nothing() -> Block:
    """Statements of the block see no rows of tenants, until set_current() says whose they are."""
    return within(NOTHING)


def of_tenant(tenant_id: uuid.UUID) -> Block:
    """Statements of the block see the rows of this tenant."""
    return within(of_one(tenant_id))


def everything() -> Block:
    """Statements of the block see all tenants: what looks for due work, counts, or finds out whose a key is."""
    return within(EVERYTHING)


def alone() -> Block:
    """Statements of the block go to the server alone, as the login: what can be in no transaction (VACUUM)."""
    return within(None)


def set_current(tenancy: Tenancy) -> None:
    """From here to the end of the block around it, once it is known who asks."""
    _current.set(tenancy)


def of_one(tenant_id: uuid.UUID) -> Tenancy:
    return Tenancy(Policies.ONE, str(tenant_id))


def of_several(tenant_ids: Iterable[uuid.UUID]) -> Tenancy:
    return Tenancy(Policies.SEVERAL, "{" + ",".join(sorted(map(str, tenant_ids))) + "}")
