"""Whose rows the statements of a block are about. On a distributed database they name this tenant (distributed.py)."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_tenant: ContextVar[Any] = ContextVar("tenant", default=None)


@contextmanager
def of_tenant(tenant: Any) -> Iterator[None]:
    """All rows of tenants that the block reads and writes by the ORM are this tenant's: an id, or an expression."""
    token = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(token)


def named() -> Any:
    """The tenant of the block; None outside one."""
    return _tenant.get()
