"""Records in messages.

A message waits in a cookie, or in the session, until a page shows it. So it has no name of a record, which can be words
of a person, but a mark. The page that shows the message puts the name in its place.
"""

import re

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from memories.admin.site.naming import NAMED, kind_of, named

_OPEN, _CLOSE = "\u27e6", "\u27e7"
_MARK = re.compile(rf"{_OPEN}([a-z]+):([0-9a-f-]{{36}}){_CLOSE}")


def mention(record: Model) -> str:
    """The mark of the record. Records that operators named have that name."""
    return str(record) if isinstance(record, NAMED) else f"{_OPEN}{record._meta.model_name}:{record.pk}{_CLOSE}"


def with_names(message: str, request: HttpRequest) -> str:
    """The message with the names of its records, as far as the operator may see these. One of Django's, which has HTML
    and no mark, stays what it is."""
    if not _MARK.search(message):
        return message
    return _MARK.sub(lambda mark: _name_of(mark[1], mark[2], request), message)


def _name_of(model_name: str, pk: str, request: HttpRequest) -> str:
    try:
        model = apps.get_model("memories", model_name)
    except LookupError:
        return ""
    page = admin.site._registry.get(model)
    record = page.get_object(request, pk) if page and page.has_view_permission(request) else None
    return named(record, request.user) if record else kind_of(model)
