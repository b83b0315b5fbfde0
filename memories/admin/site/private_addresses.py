"""A refused address in the hub's own network: which setting allows it, and its line for who may run the hub."""

from typing import NamedTuple

from django import forms
from django.conf import settings
from django.http import HttpRequest

from memories import conf
from memories.llm.addresses import PRIVATE
from memories.models import Operator


class ToAllow(NamedTuple):
    """The host and port as MEMORYHUB_PRIVATE_ENDPOINTS names them. `line`: the whole setting with it, for superusers
    alone, since it has the other hosts, too."""

    named: str
    line: str


def to_allow(request: HttpRequest, form: forms.BaseForm, field: str) -> ToAllow | None:
    """How the refused address in the field can be allowed; None if it was not refused for where it leads."""
    if not form.is_bound or not form.has_error(field, PRIVATE):
        return None
    named = conf.private_endpoint(str(form.data.get(field, "")).strip())
    is_offered = isinstance(request.user, Operator) and request.user.is_superuser
    allowed = ",".join([*settings.MEMORYHUB_PRIVATE_ENDPOINTS, named])
    return ToAllow(named, f"MEMORYHUB_PRIVATE_ENDPOINTS={allowed}" if is_offered else "")
