"""Every address of the admin, from the resolver, and who is let in when it is opened or sent an empty form."""

import re
from collections.abc import Callable, Iterator
from copy import copy
from http import HTTPStatus
from http.cookies import SimpleCookie
from typing import Any
from unittest import mock

import pytest
from django.apps import apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.batches import pin_facts
from memories.curation.people.merging.merge import merge_people
from memories.curation.review.batches import approve_items
from memories.curation.review.deciding import ExpectedVersions
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.curation.tenants.profile_schemas import put_profile_schema
from memories.models import AuditEvent, EndUser, Operator, Tenant
from memories.models.access import roles
from memories.models.ids import new_id
from tests import factories
from tests.admin.cases import with_receipt
from tests.admin.pages import HOSTILE

# The name of a profile by a schema of the tenant's own.
PROFILE = "pets"
REFUSED = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
# As path() writes them, and as re_path() does.
_ARGUMENT = re.compile(r"<(?:\w+:)?(\w+)>|\^?\(\?P<(\w+)>[^)]*\)")


# What a dry run has found.
SEEN = {
    "people": [{"name": HOSTILE, "messages": 2, "conversations": 1, "first": "2026-01-02", "last": "2026-02-03"}],
    "samples": [{"kind": "message", "text": HOSTILE}],
}


def routes() -> list[str]:
    """All addresses below /admin/ as written for people: `memories/fact/<object_id>/approve/`."""
    found = {route for route in _walk(get_resolver().url_patterns) if route.startswith("admin/")}
    return sorted(route.removeprefix("admin/") for route in found)


def _walk(patterns: list[Any], before: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield _ARGUMENT.sub(lambda found: f"<{found[1] or found[2]}>", route).rstrip("$")


def records() -> dict[str, Any]:
    """What the addresses need: a record of each model by its name, and the other arguments."""
    person = factories.end_user()
    session = factories.session(person)
    # One with the scope privacy takes the permission for cases, too.
    key, _ = factories.api_key(person.tenant, scopes=["ingest", "read", "write"])
    run, fact = factories.run(session), factories.fact(person)
    item = factories.review_item(factories.fact(person, "Likes tea", status="pending"))
    triple = factories.triple(person, "Max", "works_at", "Acme")
    selector = Selector(tenant=person.tenant, session=session.pk)
    done = roll_back(selector=selector, actor=factories.COMMAND, now=factories.NOW, reason="")
    _profile_of(person)
    named: dict[str, Any] = {
        "reviewitem": item, "enduser": person, "fact": fact, "episode": factories.episode(session),
        "session": session, "extractionrun": run, "apikey": key, "tenant": person.tenant,
        "agent": factories.agent(person.tenant), "loggedcontext": factories.logged_context(person, [fact]),
        "graphtriple": triple, "graphentity": triple.subject,
        "storeitem": factories.store_item(person), "memoryfile": factories.memory_file(person),
        "diaryentry": factories.diary_entry(person), "trajectory": factories.trajectory(person),
        "attachment": factories.attachment(session.turns.all()[0], "A rye loaf costs 6.40 euros."),
        "dream": factories.dream(person),
        "import": factories.uploaded(
            person.tenant, state="checked", counts={"messages": 2}, left_out={"media": 1}, preview=SEEN
        ),
        "memorygroup": factories.memory_group(person), "skill": factories.skill(person),
        "backup": factories.backup(),
        "managementkey": factories.management_key()[0],
        "webhookendpoint": factories.webhook(person.tenant),
        "decaypass": factories.decay_pass(person.tenant), "operator": factories.operator(is_superuser=False),
        "privacycase": with_receipt(person),
        "group": Group.objects.create(name="readers"), "auditevent": AuditEvent.objects.latest("id"),
    }  # fmt: skip
    other = {"change_set": done.id, "tenant_id": person.tenant.pk, "section": "top_of_mind", "number": 1}
    words = {"app_label": "memories", "url": "nonsense/", "provider_id": "sso", "verb": "forget", "name": PROFILE}
    made = {"merge_id": _merged(person.tenant).id, **_batches(person)}
    return {**named, **other, **words, **made, "content_type_id": ContentType.objects.get_for_model(fact).pk}


def _profile_of(person: EndUser) -> None:
    """A profile of the tenant's own, with hostile words in its schema and a value of the person's."""
    told = {"title": HOSTILE[:80], "description": HOSTILE[:300]}
    properties: dict[str, Any] = {
        "pet": {"type": "string", **told},
        "size": {"type": "string", "enum": [HOSTILE[:100], "small"], **told},
    }
    properties["size"]["title"] = f"2 {HOSTILE[:70]}"
    schema = {"type": "object", "properties": properties, **told}
    put_profile_schema(tenant=person.tenant, name=PROFILE, schema=schema, actor=factories.COMMAND, now=factories.NOW)
    factories.fact(person, f"Has {HOSTILE}", key=f"profile.{PROFILE}.pet", value=HOSTILE[:400], category="other")


def _merged(tenant: Tenant) -> Changes:
    survivor, merged = factories.end_user(tenant), factories.end_user(tenant)
    return merge_people(survivor=survivor.pk, merged=merged.pk, actor=_staff(), now=factories.NOW)


def _batches(person: EndUser) -> dict[str, Any]:
    """The batches of facts and of review items: their addresses name both alike."""
    given: dict[str, Any] = {"actor": _staff(), "now": factories.NOW, "reason": ""}
    fact = factories.fact(person, "Likes coffee")
    pinned = pin_facts(batch_id=new_id(), expected={fact.pk: fact.version}, **given)
    waits = factories.fact(person, "Likes milk", status="pending")
    item = factories.review_item(waits)
    approved = approve_items(
        batch_id=new_id(), expected={item.pk: ExpectedVersions(item.version, {waits.pk: waits.version})}, **given
    )
    return {"fact batch": pinned.pk, "reviewitem batch": approved.pk}


def _staff() -> Actor:
    return Actor.operator(factories.operator())


def address(route: str, known: dict[str, Any]) -> str:
    """The route with its arguments filled in."""
    model = route.split("/")[1] if route.count("/") > 1 else ""
    record = known.get(model, known["fact"])

    def value(found: re.Match[str]) -> str:
        if found[1] == "batch_id":
            return str(known[f"{model} batch"])
        return str(record.pk if found[1] in ("object_id", "id") else known[found[1]])

    return reverse("admin:index") + re.sub(r"<(\w+)>", value, route)


def answer_to(client: Client, method: str, where: str) -> Any:
    """What the request, with an empty form, is answered; what it did is undone, so its session is not even saved."""
    cookies = SimpleCookie(client.cookies)
    with transaction.atomic(), mock.patch.object(SessionStore, "save"):
        response = client.generic(method, where, content_type="application/x-www-form-urlencoded")
        transaction.set_rollback(True)
    client.cookies = cookies
    return response


def is_let_in(client: Client, method: str, where: str) -> bool:
    """Whether the request was taken."""
    response = answer_to(client, method, where)
    to_sign_in = response.headers.get("Location", "").startswith(reverse("admin:login"))
    return not to_sign_in and response.status_code not in REFUSED


def role(name: str) -> Operator:
    """One of staff in this group alone; "staff" is in none."""
    grant_roles()
    operator = factories.operator(is_superuser=name == "superuser")
    operator.groups.set(Group.objects.filter(name=name))
    return operator


def grant_roles() -> None:
    """Tests with transactions of their own leave no groups behind."""
    if not Group.objects.filter(name="administrator").exists():
        roles.grant(apps)


def reads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is signed in and what they may does not change during a walk: what a request does is undone before the next.

    What is read for it takes more than half of the statements of these requests.
    """

    def kept(of: type, name: str, key: Callable[..., Any]) -> None:
        plain, found = getattr(of, name), dict[Any, Any]()

        def known(self: Any, *given: Any, **named: Any) -> Any:
            at = key(self, *given, **named)
            if at not in found:
                found[at] = plain(self, *given, **named)
            return copy(found[at])

        monkeypatch.setattr(of, name, known)

    kept(SessionStore, "load", lambda session: session.session_key)
    kept(ModelBackend, "get_user", lambda _backend, pk: pk)
    kept(ModelBackend, "get_all_permissions", lambda _backend, user, obj=None: (user.pk, obj))
