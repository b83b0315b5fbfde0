"""Which facts a form names, and which versions of them the operator saw."""

import uuid

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _

from memories.admin.page import RecordPage
from memories.exceptions import InvalidInput

SEEN = "seen"


def check_may_change(page: RecordPage, request: HttpRequest) -> None:
    """Errors: PermissionDenied."""
    if not page.has_change_permission(request):
        raise PermissionDenied


def ids_of(request: HttpRequest, name: str) -> list[uuid.UUID]:
    """The ids that the posted form has under this name, each once. Errors: InvalidInput."""
    try:
        return list(dict.fromkeys(uuid.UUID(given) for given in request.POST.getlist(name)))
    except ValueError as error:
        raise InvalidInput.at(name, _("This is no id.")) from error


def versions_of(request: HttpRequest) -> dict[uuid.UUID, int]:
    """The versions that were shown, from fields `seen` of the form `id:version`. Errors: InvalidInput."""
    try:
        pairs = [given.partition(":") for given in request.POST.getlist(SEEN)]
        return {uuid.UUID(pk): int(version) for pk, _colon, version in pairs}
    except ValueError as error:
        raise InvalidInput.at(SEEN, _("This is no id with a version.")) from error
