"""Make an API key and print it, alone, on standard output."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from memories import curation
from memories.audit import Actor
from memories.exceptions import Conflict
from memories.models import ActorKind, APIKey, Scope, Tenant


class Command(BaseCommand):
    help = "Make an API key for a tenant (made when missing); prints the key alone, once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug, e.g. acme-prod.")
        parser.add_argument("--scopes", required=True, help="Comma-separated: " + ", ".join(Scope.values))
        parser.add_argument("--name", default="", help="What will use it.")

    def handle(self, *args: Any, **options: Any) -> None:
        scopes, name = _scopes(options["scopes"]), _name(options["name"])
        now, actor = timezone.now(), Actor(kind=ActorKind.COMMAND)
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            tenant = curation.save_tenant(tenant=Tenant(slug=_slug(options["tenant"])), actor=actor, now=now)
        try:
            _, plaintext = curation.create_api_key(tenant=tenant, name=name, scopes=scopes, actor=actor, now=now)
        except Conflict as error:
            raise CommandError(error.detail) from None
        self.stdout.write(plaintext)


def _scopes(text: str) -> list[str]:
    scopes = [scope.strip() for scope in text.split(",") if scope.strip()]
    unknown = sorted(set(scopes) - set(Scope.values))
    if unknown or not scopes:
        raise CommandError(f"--scopes takes a comma-separated list of {', '.join(Scope.values)}; got {text!r}.")
    return list(dict.fromkeys(scopes))


def _slug(text: str) -> str:
    try:
        Tenant._meta.get_field("slug").clean(text, None)
    except ValidationError:
        raise CommandError(f"--tenant takes a slug of 1 to 63 letters, digits, - and _; got {text!r}.") from None
    return text


def _name(text: str) -> str:
    try:
        APIKey._meta.get_field("name").clean(text, None)
    except ValidationError as error:
        raise CommandError(f"--name: {' '.join(error.messages)}") from None
    return text
