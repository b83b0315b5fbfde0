"""Arguments that several commands take."""

from argparse import ArgumentTypeError
from datetime import datetime

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories.models import APIKey, EndUser, Scope, Tenant

MOST_DAYS = 36_500


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
        raise CommandError(f"There is no tenant {slug}.")
    return tenant


def person_of(tenant: Tenant, user_id: str) -> EndUser:
    """The person, or who they were merged into. Errors: CommandError."""
    person = EndUser.objects.called(tenant, user_id).first()
    if person is None:
        raise no_such_person(tenant, user_id)
    return person


def no_such_person(tenant: Tenant, user_id: str) -> CommandError:
    return CommandError(f"There is no person {user_id} in the tenant {tenant.slug}.")


def days(text: str) -> int:
    found = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= found <= MOST_DAYS:
        raise ArgumentTypeError(f"{text!r} is no number of days from 0 to {MOST_DAYS}")
    return found


def scopes(text: str, *, option: str) -> list[str]:
    """Scopes between commas. Errors: CommandError."""
    found = [scope.strip() for scope in text.split(",") if scope.strip()]
    unknown = sorted(set(found) - set(Scope.values))
    if unknown or not found:
        raise CommandError(f"{option} takes a comma-separated list of {', '.join(Scope.values)}; got {text!r}.")
    return list(dict.fromkeys(found))


def key_name(text: str) -> str:
    """Errors: CommandError."""
    try:
        APIKey._meta.get_field("name").clean(text, None)
    except ValidationError as error:
        raise CommandError(f"--name: {' '.join(error.messages)}") from None
    return text
