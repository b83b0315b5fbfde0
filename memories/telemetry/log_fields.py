"""What a line of the log says beside its message, while a request or a task is at work: its id, and the tenant."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

REQUEST, TASK, TENANT = "request_id", "task", "tenant"
# The same in the environment of a request, which outlives the work on it.
ANSWERED_ID, ANSWERED_TENANT = "memoryhub.request_id", "memoryhub.tenant"
_fields: ContextVar[dict[str, str] | None] = ContextVar("log_fields", default=None)


@contextmanager
def at_work(name: str, value: str) -> Iterator[None]:
    """Lines of this thread inside the block have this field, and those that are noted meanwhile."""
    token = _fields.set({name: value})
    try:
        yield
    finally:
        _fields.reset(token)


def note_tenant(slug: str) -> None:
    fields = _fields.get()
    if fields is not None:
        fields[TENANT] = slug


def current() -> Mapping[str, str]:
    return _fields.get() or {}
