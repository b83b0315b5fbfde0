"""Arguments that several commands take."""

from argparse import ArgumentTypeError
from datetime import datetime

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories.models import Tenant


def moment(text: str) -> datetime:
    """A date and time; without a zone it is UTC."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no date and time like 2026-11-03T09:00:00Z")
    return found if timezone.is_aware(found) else timezone.make_aware(found)


def external_id(text: str) -> str:
    """The caller's id of a person. Errors: ArgumentTypeError for bytes of a shell that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentTypeError("this is not UTF-8") from None
    return text


def tenant_of(slug: str) -> Tenant:
    """Errors: CommandError."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        raise CommandError("--tenant: there is none such.")
    return tenant
