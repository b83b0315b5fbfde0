"""Nothing personal where it does not belong: logs, addresses, titles of other pages than a person's or session's own,
payloads of tasks, `__str__`, bodies of errors.

A mark stands wherever people can put something. Each look is also made where the mark is put on purpose, so that it is
known to find it.
"""

import html
import io
import logging
import logging.config
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote

import pytest
from django.apps import apps
from django.conf import settings as hub_settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.contrib.messages import get_messages
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.db.models.functions import Now
from django.test import Client
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.signing import SignedPackage

from memories import tasks
from memories.admin.facts import pages as facts_page
from memories.api import lookups
from memories.audit import Actor
from memories.capture import flushing
from memories.curation.decay import run_decay
from memories.curation.facts.forgetting import forget_fact
from memories.exceptions import ModelAnswerInvalid, ModelUnavailable
from memories.forgetting import decay
from memories.models import APIKey, EndUser, Fact, Operator, SessionQueue, Tenant, Turn
from memories.privacy import retention
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of
from tests.api.client import HubClient
from tests.browser import world
from tests.model import Model, candidate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("ledger_apart")]
MARK = "Zqxmarkerling"
ADDRESS = f"{MARK}@example.test"
_LINKS = re.compile(r'\b(?:href|src|action|formaction|data-[a-z-]*(?:url|href))="([^"]*)"')
VERBS = (
    "pin", "unpin", "lock", "unlock", "correct", "publish", "withdraw", "expire", "reconsider", "approve", "reject",
    "keep_both", "undo", "edit", "update", "change_id", "merge", "change", "forget", "restore", "delete",
)  # fmt: skip
_RECORD = re.compile(r"/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/")
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world of hostile texts, with the mark in place of each of them."""
    monkeypatch.setattr(world, "ALL", MARK)
    monkeypatch.setattr(world, "STRINGS", (MARK,))
    monkeypatch.setattr(world, "TURNS", [("user", "Hi"), ("user", f"{MARK} lives in Leiden"), ("assistant", MARK)])
    monkeypatch.setattr(world, "pieces", lambda size: [f"{MARK}{size}-{number}" for number in range(10)])


@contextmanager
def logged(level: int = logging.INFO) -> Iterator[io.StringIO]:
    """What the hub would write to its log: its own handlers, formatter and levels."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    configured: Any = hub_settings.LOGGING
    formatter = configured["formatters"]["text"]
    handler.setFormatter(logging.config.DictConfigurator(configured).configure_formatter(formatter))
    loggers = [logging.getLogger(), logging.getLogger("django-q")]
    before = [(one, one.level) for one in loggers]
    logging.getLogger().setLevel(level)
    for one in loggers:
        one.addHandler(handler)
    try:
        yield written
    finally:
        for one, was in before:
            one.removeHandler(handler)
            one.setLevel(was)


def says_mark(text: object) -> bool:
    """Also escaped, as a page or an address would have it."""
    return MARK.lower() in unquote(html.unescape(str(text))).lower()


@pytest.fixture
def person() -> EndUser:
    named = {"external_id": ADDRESS, "display_name": MARK, "metadata": {MARK: MARK}}
    return factories.end_user(factories.tenant(slug="acme"), **named)


@pytest.fixture
def client(person: EndUser) -> HubClient:
    client = HubClient(factories.api_key(person.tenant)[1])
    client.http = Client(raise_request_exception=False)
    return client


def turn(**over: Any) -> dict[str, Any]:
    message = {"role": "user", "content": f"I am {MARK}", "name": MARK, "metadata": {MARK: MARK}, **over}
    return {"user_id": ADDRESS, "session_id": MARK, "agent_id": MARK, "messages": [message]}


class TestLogs:
    @pytest.mark.parametrize(
        "failure",
        [
            None,
            ModelAnswerInvalid(f"no JSON: {MARK}"),
            ModelUnavailable(f"prompt was {MARK}"),
            IntegrityError(f"Key (external_id)=({MARK}) already exists."),
            ValueError(f"could not parse {MARK}"),
        ],
        ids=lambda failure: type(failure).__name__,
    )
    def test_of_a_post_and_its_extraction(self, client: HubClient, model: Model, failure: Exception | None) -> None:
        with logged(logging.DEBUG) as written:
            assert client.post("/turns", turn()).status_code == 202
            session_id = SessionQueue.objects.get().pk
            SessionQueue.objects.update(due_at=Now())
            model.answers.append(failure or {"new_facts": [candidate(f"Is called {MARK}", quote=MARK)]})
            tasks.consolidate_session(str(session_id))
            tasks.compact_session(str(session_id))
            tasks.forget()
            tasks.retain()
            tasks.seal_audit()
            logging.getLogger("memories").info("The log is read")
        assert Fact.objects.exists() is (failure is None)
        assert "The log is read" in written.getvalue()
        assert not says_mark(written.getvalue())

    @pytest.mark.parametrize("where", ["api", "admin"])
    def test_of_an_error_of_ours(
        self, client: HubClient, person: EndUser, monkeypatch: pytest.MonkeyPatch, where: str
    ) -> None:
        def fail(*_: Any, **__: Any) -> None:
            try:
                raise IntegrityError(f"Key (external_id)=({MARK}) already exists.")
            except IntegrityError as error:
                raise RuntimeError(f"It was about {MARK}") from error

        monkeypatch.setattr(lookups, "readable_person", fail)
        monkeypatch.setattr(facts_page.FactPage, "get_queryset", fail)
        browser = signed_in(factories.operator())
        browser.raise_request_exception = False
        with logged() as written:
            headers = {"Authorization": f"Bearer {client.plaintext}"}
            of_api = client.http.get("/api/v1/facts", {"user_id": ADDRESS}, headers=headers)
            answer = of_api if where == "api" else browser.get(list_of(Fact), {"q": MARK})
        assert answer.status_code == 500
        assert not says_mark(answer.content.decode())
        # Enough to find it by: kinds, file and function, for both of the errors.
        for told in ("RuntimeError", "IntegrityError", "in fail"):
            assert told in written.getvalue()
        assert not says_mark(written.getvalue())

    def test_the_look_finds_what_is_logged(self) -> None:
        with logged() as written:
            logging.getLogger("anything").warning("It is %s", MARK)
        assert says_mark(written.getvalue())

    def test_another_formatter_would_tell(self) -> None:
        try:
            raise ValueError(MARK)
        except ValueError as error:
            told = logging.Formatter().formatException((type(error), error, error.__traceback__))
        assert says_mark(told)

    def test_of_commands(self, person: EndUser, model: Model, capsys: pytest.CaptureFixture[str]) -> None:
        session = factories.session(person, [("user", f"I am {MARK}")], session_id=MARK)
        SessionQueue.objects.update(due_at=Now())
        model.answers.append(ModelAnswerInvalid(f"no JSON: {MARK}"))
        named = {"tenant": person.tenant.slug}
        with logged() as written:
            for command in ("consolidate", "decay", "retain", "verify_audit", "export_audit", "check_memory"):
                with suppress(CommandError):
                    call_command(command, **({} if command in ("verify_audit", "check_memory") else named))
        said = capsys.readouterr()
        assert said.out
        assert not says_mark(said.out + said.err + written.getvalue())
        assert session.pk


class TestErrorBodies:
    WRONG: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("POST", "/turns", turn(role=MARK)),
        ("POST", "/turns", turn(content={"text": MARK})),
        ("POST", "/turns", turn(timestamp=MARK)),
        ("POST", "/turns", turn(metadata=MARK)),
        ("POST", "/turns", turn(external_id=MARK * 100)),
        ("POST", "/turns", {**turn(), "flush": MARK}),
        ("POST", "/context", {"user_id": ADDRESS, "max_tokens": MARK, "include": [MARK]}),
        ("POST", "/search", {"user_id": ADDRESS, "query": MARK, "limit": MARK, "kinds": [MARK]}),
        ("POST", "/facts", {"user_id": ADDRESS, "content": MARK, "category": MARK, "confidence": MARK}),
        ("POST", "/facts", {"user_id": ADDRESS, "content": MARK, "expires_at": MARK, "tags": MARK}),
        ("PATCH", "/users/detail", {"user_id": ADDRESS, "time_zone": MARK, "language": MARK * 9, "metadata": MARK}),
        ("PUT", "/profile/top_of_mind", {"user_id": ADDRESS, "summary": [MARK]}),
        ("POST", "/sessions/end", {"user_id": ADDRESS, "session_id": MARK, "agent_id": [MARK]}),
    )

    @pytest.mark.parametrize(("method", "path", "body"), WRONG)
    def test_they_quote_nobody(self, client: HubClient, method: str, path: str, body: dict[str, Any]) -> None:
        with logged() as written:
            answer = client.call(method, path, body)
        assert 400 <= answer.status_code < 500
        assert not says_mark(answer.content.decode())
        assert not says_mark(written.getvalue())

    @pytest.mark.parametrize(
        ("path", "query"),
        [
            ("/facts", {"user_id": ADDRESS, "category": MARK, "status": MARK}),
            ("/facts", {"user_id": ADDRESS, "limit": MARK, "cursor": MARK}),
            ("/episodes", {"user_id": ADDRESS, "since": MARK}),
            ("/extractions", {"user_id": ADDRESS, "status": MARK}),
            ("/sessions", {"user_id": ADDRESS, "limit": MARK}),
            ("/users", {"limit": MARK, "cursor": MARK}),
        ],
    )
    def test_nor_do_those_of_a_query(self, client: HubClient, path: str, query: dict[str, str]) -> None:
        with logged() as written:
            answer = client.get(path, **query)
        assert answer.status_code >= 400 or not any(name in query for name in ("limit", "cursor"))
        assert not says_mark(answer.content.decode())
        assert not says_mark(written.getvalue())

    def test_nor_one_of_a_body_that_is_no_json(self, client: HubClient) -> None:
        answer = client.call("POST", "/turns", f'{{"user_id": "{MARK}'.encode())
        assert answer.status_code == 400
        assert not says_mark(answer.content.decode())

    def test_the_look_finds_what_an_answer_says(self, client: HubClient, person: EndUser) -> None:
        assert says_mark(client.get("/users/detail", user_id=ADDRESS).content.decode())


class TestPages:
    """Every page of the admin, in a hub full of marks."""

    @pytest.fixture
    def operator(self) -> Operator:
        return factories.operator()

    @pytest.fixture
    def known(self, operator: Operator) -> dict[str, Any]:
        known = world.made(operator)
        factories.privacy_case(known["enduser"], channel=MARK, reference=MARK, hold_reason=MARK, told=MARK)
        known["fact"].refresh_from_db()
        # Staff's own words, which may stand in titles.
        Group.objects.filter(name__startswith=MARK).update(name="readers")
        Tenant.objects.update(name="Acme")
        APIKey.objects.update(name="bot")
        return known

    def test_addresses_titles_and_logs(self, operator: Operator, known: dict[str, Any]) -> None:
        """The title of a record's page names the record, for the tabs of who looks at several; no other title does."""
        person, session = known["enduser"], known["session"]
        own = {person.pk: person.display_name, session.pk: session.external_id}
        found, marked, called = [], 0, set()
        with logged() as written:
            for where, page, _ in world.pages(operator, known):
                marked += says_mark(page)
                whose = next((pk for pk in own if f"/{pk}/" in where), None)
                titles = _TITLE.findall(page)
                called |= {whose for title in titles if whose and own[whose] in title}
                rest = [] if _RECORD.search(where) else titles
                found += [(where, text) for text in (*_LINKS.findall(page), *rest) if says_mark(text)]
        # They show it: it would be found.
        assert marked > 15
        assert called == set(own)
        assert found == []
        assert not says_mark(written.getvalue())

    def test_redirects_and_messages_of_verbs(self, operator: Operator, known: dict[str, Any]) -> None:
        client, carried_out = signed_in(operator), 0
        fields = ("content", "reason", "note", "summary", "display_name", "name", "q", "text", "external_id")
        words = dict.fromkeys(fields, f"{MARK} anew") | {"time_zone": "UTC", "importance": "0.5"}
        for kind in ("fact", "enduser", "episode", "reviewitem"):
            for verb in VERBS:
                known[kind].refresh_from_db()
                with suppress(NoReverseMatch):
                    where = page_of(known[kind], verb)
                    answer = client.post(where, {**words, "version": getattr(known[kind], "version", 1)})
                    carried_out += answer.status_code == 302
                    assert not says_mark(answer.headers.get("Location", "")), where
                    assert not says_mark([str(message) for message in get_messages(answer.wsgi_request)]), where
        assert carried_out > 8

    def test_what_stands_for_a_record_in_the_admins_own_log(self, known: dict[str, Any]) -> None:
        assert not [entry for entry in LogEntry.objects.all() if says_mark([entry.object_repr, entry.change_message])]

    def test_str_of_all_there_is(self, known: dict[str, Any]) -> None:
        person = EndUser.objects.get(pk=known["enduser"].pk)
        factories.privacy_export(factories.privacy_case(person))
        factories.idempotency_record(person, endpoint="x", body=MARK.encode())
        said, kinds = [], set()
        for model in apps.get_models():
            for row in model._default_manager.all()[:50]:
                kinds.add(model.__name__)
                said += [f"{model.__name__}: {row}"] if says_mark(row) or says_mark(repr(row)) else []
        assert said == []
        assert len(kinds) > 22

    def test_the_look_finds_a_name_in_a_title(self) -> None:
        assert says_mark(_TITLE.findall(f"<title>{MARK} | Memory Hub</title>"))
        assert says_mark(_LINKS.findall(f'<a href="?q={MARK}%40example">x</a>'))


class TestPayloads:
    def test_tasks_carry_ids_alone(self, client: HubClient, person: EndUser) -> None:
        client.post("/turns", turn())
        session = SessionQueue.objects.get().session
        flushing.end_session(
            tenant=person.tenant, user_id=ADDRESS, session_id=session.external_id, agent_id=MARK.lower()
        )
        fact = factories.fact(person, f"Is called {MARK}")
        actor = Actor.operator(factories.operator())
        forget_fact(fact_id=fact.pk, tenant=None, actor=actor, now=timezone.now())
        run_decay(tenant=person.tenant, actor=actor, now=timezone.now())
        retention.run(tenant=person.tenant, actor=actor, now=timezone.now())
        decay.replan(tenant_id=person.tenant.pk)
        payloads = [SignedPackage.loads(payload) for payload in OrmQ.objects.values_list("payload", flat=True)]
        assert len(payloads) >= 3
        assert not says_mark(payloads)
        assert not says_mark(list(Task.objects.values_list("args", "kwargs", "result")))
        assert Turn.objects.exists()

    def test_the_look_would_find_one(self) -> None:
        assert says_mark(SignedPackage.loads(SignedPackage.dumps({"args": (ADDRESS,)})))


def test_the_trail_and_its_export_hold_none(client: HubClient, person: EndUser, capsys: Any) -> None:
    client.post("/turns", turn())
    fact = factories.fact(person, f"Is called {MARK}")
    forget_fact(fact_id=fact.pk, tenant=None, actor=factories.COMMAND, now=timezone.now())
    call_command("export_audit", "--tenant", person.tenant.slug)
    said = capsys.readouterr().out
    assert "forget" in said
    assert not says_mark(said)
    assert reverse("admin:index")
