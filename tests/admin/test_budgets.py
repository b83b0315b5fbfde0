"""How many queries each page of the admin takes, held against the budgets in budgets.toml, with more rows than a page.

A new page fails here until it has a budget; the message has the line. What grows with the rows goes beyond any budget.
"""

import math
import tomllib
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories.admin.access import lifetime
from memories.admin.lists import cells
from memories.models import ActorKind, EndUser, Operator, Skill, WebhookEndpoint
from tests import factories
from tests.admin import walk
from tests.admin.cases import case_of

pytestmark = pytest.mark.django_db
FILE = Path(__file__).parent / "budgets.toml"
BUDGETS: dict[str, int] = tomllib.loads(FILE.read_text(encoding="utf-8"))["queries"]
# A page of a list and a few more.
ROWS = 28
# Leads to the start and out of the session.
LEFT_OUT = ("logout/",)


@pytest.fixture
def world(administrator: Operator) -> dict[str, Any]:
    """One of each for the pages of records, the person with many of each, and as many people."""
    known = walk.records()
    for number in range(ROWS):
        _more(known["enduser"], number)
        _more(factories.end_user(known["tenant"] if number % 2 else None), number)
        factories.saved_filter(administrator, name=f"n{number}") if number < 5 else None
    for run in known["session"].runs.all():
        factories.fact(known["enduser"], f"of {run.pk}", extraction=run)
    return known


def _more(person: EndUser, number: int) -> None:
    session = factories.session(person, [("user", "Hello"), ("assistant", "Hi")])
    run, waits = factories.run(session), factories.fact(person, f"Waits {number}", status="pending")
    fact = factories.fact(person, f"Likes tea {number}", extraction=run, pinned=number % 2 == 0)
    factories.evidence(fact, session.turns.first() or fact)  # type: ignore[arg-type]
    factories.review_item(waits)
    factories.episode(session)
    _files(person, number)
    factories.diary_entry(person, f"Note {number}", agent_id=f"agent-{number}")
    factories.trajectory(person, f"Task {number}", session_id=f"s-{number}")
    factories.attachment(session.turns.all()[0], f"Page {number}", f"More {number}")
    _skill(person, number)
    hook = WebhookEndpoint.objects.filter(tenant=person.tenant).first() or factories.webhook(person.tenant)
    factories.webhook_delivery(hook, person)
    shared = person.memberships.first()
    group = shared.group if shared else factories.memory_group(person)
    factories.group_fact(group, person, content=f"Shared {number}", about=person)
    factories.decay_pass(person.tenant, as_of=timezone.now())
    factories.api_key(person.tenant)
    case_of(person, ("received", "verified", "scoped", "running", "failed", "on_hold", "completed")[number % 7])


def _skill(person: EndUser, number: int) -> None:
    """One more skill; and of the one whose page is opened one more version and trial."""
    shown = Skill.objects.filter(tenant=person.tenant).order_by("created_at", "pk").first()
    if shown and not shown.versions.filter(number=number + 2).exists():
        version = shown.versions.create(
            tenant_id=person.tenant_id, number=number + 2, state="former", actor_kind=ActorKind.COMMAND,
            created_at=timezone.now(), served_from=timezone.now(),
        )  # fmt: skip
        text = version.texts.create(tenant_id=person.tenant_id, section="step", position=1, text=f"Step {number}")
        text.evidence.create(tenant_id=person.tenant_id, trajectory=factories.trajectory(person))
        version.trials.create(
            tenant=person.tenant, end_user=person, session_id=f"s-{number}", arm="served", via="files",
            noted_at=timezone.now(),
        )  # fmt: skip
    factories.skill(person)


def _files(person: EndUser, number: int) -> None:
    """One more of each agent and folder, and one more version of the file whose page is opened."""
    key, _ = factories.api_key(person.tenant)
    file = factories.memory_file(
        person, f"/memories/f{number % 5}/{number}.md", agent_id=f"agent-{number % 7}" if number % 2 else ""
    )
    shown = person.files.filter(path="/memories/notes.md").first() or file
    row = shown.versions.create(
        tenant=person.tenant, version=number + 2, verb="edit", content=f"Runs {number} bakeries.\n",
        actor_kind=ActorKind.KEY, actor_id=str(key.pk), trust="user", created_at=timezone.now(),
    )  # fmt: skip
    person.files.filter(pk=shown.pk).update(version=row.version)


def taken(client: Client, known: dict[str, Any], routes: list[str]) -> Iterator[tuple[str, int]]:
    """The queries of each of the routes that is a page."""
    for route in routes:
        with CaptureQueriesContext(connection) as queries:
            response = client.get(walk.address(route, known))
        if response.status_code == HTTPStatus.OK:
            yield route, len(queries)


def beyond(found: Iterator[tuple[str, int]]) -> list[str]:
    """Lines as the file should have them, where a page takes more than it has there."""
    return [f"'{route}' = {count}" for route, count in found if count > BUDGETS.get(route, -1)]


def test_each_page_keeps_to_its_budget(admin: Client, world: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine the walk takes minutes, and once a minute a page notes that the operator is there.
    monkeypatch.setattr(lifetime, "STEP_SECONDS", math.inf)
    routes = [route for route in walk.routes() if route not in LEFT_OUT]
    found = beyond(taken(admin, world, routes))
    assert not found, "\n".join(found)


def test_the_file_names_no_page_that_is_gone() -> None:
    assert set(BUDGETS) <= set(walk.routes())


def test_a_query_for_each_row_is_seen(admin: Client, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [factories.fact(person, f"Likes tea {number}") for number in range(ROWS)]
    assert list(beyond(taken(admin, {"fact": facts[0]}, ["memories/fact/"]))) == []
    shown = cells.person
    monkeypatch.setattr(cells, "person", lambda person: shown(EndUser.objects.get(pk=person.pk)))
    (line,) = beyond(taken(admin, {"fact": facts[0]}, ["memories/fact/"]))
    assert line.startswith("'memories/fact/' = ")
