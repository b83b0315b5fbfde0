"""The page that tries extraction: who may see a prompt, who may ask a model, and what it shows."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.admin.runs.previewing import turns_of
from memories.models import AuditEvent, Fact, Session, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
SEES = ("view_fact", "view_episode", "view_session", "view_extractionrun")


@pytest.fixture
def session() -> Session:
    person = factories.end_user(external_id="u-1")
    return factories.session(person, [("user", "I live in <b>Leiden</b>"), ("assistant", "Noted")])


def post(client: Client, act: str, session: Session | None = None, **given: Any) -> Any:
    page = reverse("admin:extraction_preview")
    return client.post(f"{page}?session={session.pk}" if session else page, {"act": act, **given})


def test_a_session_is_tried_and_the_page_says_what_would_come_of_it(
    admin: Client, session: Session, model: Model
) -> None:
    assert reverse("admin:extraction_preview") in text_of(admin.get(page_of(session)))
    model.say(candidate(), candidate("Is in a <i>hurry</i>", confidence=0.1))
    answer = post(admin, "run", session)
    page = text_of(answer)
    for shown in (
        "I live in &amp;lt;b&amp;gt;Leiden",
        "Lives in Leiden",
        "New · Knowledge",
        "Is in a &lt;i&gt;hurry",
        "Confidence too low",
    ):
        assert shown in page, shown
    assert "no-store" in answer["Cache-Control"]
    assert not Fact.objects.exists()
    assert "tried extraction" in text_of(admin.get(reverse("admin:memories_auditevent_changelist")))


def test_a_pasted_text_with_a_guidance(admin: Client, model: Model) -> None:
    tenant = factories.tenant()
    given: dict[str, Any] = {
        "tenant": tenant.pk,
        "text": "User: I live in Delft\nAssistant: Fine",
        "guidance": "Only <homes>.",
    }
    assert "&lt;homes&gt;" in text_of(post(admin, "show", **given, other_guidance="on"))
    assert "User: I live" not in str(model.prompts)
    post(admin, "run", **given)
    assert ("I live in Delft" in model.prompts[0], "<homes>" in model.instructions[0]) == (True, False)
    for bad in ({"text": ""}, {"tenant": ""}, {"user_id": "nobody"}, {"after": "x", "text": ""}, {"text": "a\x00b"}):
        assert post(admin, "run", **{**given, **bad}).status_code == 400, bad
    assert len(model.prompts) == 1


def test_who_may_see_and_who_may_ask(session: Session, model: Model, staff_who_may: Callable[..., Client]) -> None:
    client = staff_who_may(*SEES)
    assert post(client, "show", session).status_code == 200
    assert "Only who may change the tenant" in text_of(post(client, "show", session))
    assert post(client, "run", session).status_code == 403
    assert post(staff_who_may(*SEES, "change_tenant"), "run", session).status_code == 200
    for missing in SEES:
        assert post(staff_who_may(*set(SEES) - {missing}), "show", session).status_code == 403
    # Of another tenant there is neither the session nor a text to try.
    foreign = signed_in(limited(factories.tenant()))
    assert "Leiden" not in text_of(post(foreign, "show", session))
    assert post(foreign, "show", tenant=session.tenant_id, text="x").status_code == 400
    assert AuditEvent.objects.filter(verb="try_extraction").count() == 1
    assert Tenant.objects.count() == 2


def test_lines_begin_turns() -> None:
    turns = turns_of("I am here\nUser: Hello\nthere\n\nAssistant: Hi\n用户：你好\n助手: 你好！\nuser:\n")
    assert [(turn.role, turn.content) for turn in turns] == [
        ("user", "I am here"), ("user", "Hello\nthere"), ("assistant", "Hi"), ("user", "你好"), ("assistant", "你好！"),
    ]  # fmt: skip
    assert turns_of(" \n") == []
