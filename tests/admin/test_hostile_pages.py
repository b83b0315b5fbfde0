"""No page of the admin lets through what people wrote, in a hub full of hostile text; nor does a page after a form."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import AuditEvent, Fact, Operator, PrivacyCase, Tenant
from tests import factories
from tests.admin.pages import HOSTILE, LIVE_TAGS, list_of, page_of, shows_harmless
from tests.browser import world

pytestmark = pytest.mark.django_db
VERBS = {"fact": ("correct", "forget", "approve"), "episode": ("edit",), "reviewitem": ("reject", "merge", "edit")}
PATH = f"/memories/{HOSTILE.replace('/', '|')}"


@pytest.fixture
def known(administrator: Operator, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The world of hostile texts, with one in place of each of them."""
    monkeypatch.setattr(world, "ALL", HOSTILE)
    monkeypatch.setattr(world, "STRINGS", (HOSTILE,))
    monkeypatch.setattr(world, "TURNS", [("user", "你好"), ("user", f"我对花生过敏 {HOSTILE}"), ("assistant", HOSTILE)])
    # Names are told apart by their ends.
    monkeypatch.setattr(world, "pieces", lambda size: [f"{HOSTILE}{size}-{number}" for number in range(10)])
    return world.made(administrator)


def more(known: dict[str, Any]) -> dict[str, Any]:
    """Of what the browser's world leaves out, one of each."""
    person, tenant = known["enduser"], known["tenant"]
    Tenant.objects.filter(pk=tenant.pk).update(file_seed=HOSTILE)
    file = factories.memory_file(person, PATH, HOSTILE, agent_id=HOSTILE)
    file.versions.create(
        tenant=tenant, version=2, verb="edit", content=f"{HOSTILE}\nplain", actor_kind="key", trust="user",
        created_at=factories.NOW,
    )  # fmt: skip
    group = factories.memory_group(person, name=HOSTILE)
    factories.group_fact(group, person, content=HOSTILE)
    return {
        "memoryfile": file, "memorygroup": group, "agent": factories.agent(tenant, HOSTILE, guidance=HOSTILE),
        "trajectory": factories.trajectory(person, HOSTILE, agent_id=HOSTILE, family=HOSTILE[:90]),
        "diaryentry": factories.diary_entry(person, HOSTILE, agent_id=HOSTILE, topic=HOSTILE[:90]),
        "attachment": factories.attachment(known["session"].turns.all()[0], HOSTILE, name=HOSTILE[:200]),
        "webhookendpoint": factories.webhook(tenant, name=HOSTILE),
        "storeitem": factories.store_item(person, {"text": HOSTILE}, key=HOSTILE),
    }  # fmt: skip


def test_every_page_escapes_it(administrator: Operator, known: dict[str, Any]) -> None:
    made = more(known)
    texts = {where: text for where, text, _ in world.pages(administrator, {**known, **made})}
    assert {where: tag for where, text in texts.items() for tag in LIVE_TAGS if tag in text} == {}
    # They show it: it would be found.
    shown = {where for where, text in texts.items() if "&lt;script&gt;alert" in text}
    expected = {page_of(record) for record in (*made.values(), known["tenant"], known["session"])}
    expected |= {list_of(model) for model in (AuditEvent, PrivacyCase, *map(type, made.values()))}
    expected |= {
        page_of(made["memoryfile"], "compare"),
        *(page_of(known["enduser"], tab) for tab in ("files", "diary")),
    }
    assert expected - shown == set()
    assert len(shown) > 45


def after_a_form(client: Client, known: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Pages that only a form leads to."""
    person, fact, item = known["enduser"], known["fact"], known["reviewitem"]
    other, another = (
        factories.fact(person, f"{HOSTILE} too"),
        factories.end_user(person.tenant, external_id=f"{HOSTILE}2"),
    )
    asked = {"query": HOSTILE, "agent": "", "session": "", "max_tokens": "2000"}
    whose = {"tenant": person.tenant_id, "user_id": person.external_id}
    yield "why recalled", client.post(reverse("admin:recalled"), {**whose, **asked})
    yield "what an agent sees", client.post(page_of(person, "seen"), asked)
    yield "what was said", client.post(reverse("admin:said"), {**whose, "query": HOSTILE, "role": ""})
    yield "the merge of two people", client.post(page_of(person, "merge"), {"other": another.external_id})
    yield "the merge of facts", client.post(page_of(fact, "merge"), {"other": [str(other.pk)]})
    yield (
        "a refused fact",
        client.post(f"{reverse('admin:memories_fact_add')}?person={person.pk}", {"content": HOSTILE}),
    )
    chosen = {"action": "pin_many", "_selected_action": [str(fact.pk)], "index": "0"}
    yield "many facts", client.post(list_of(Fact), chosen)
    yield "many items", client.post(reverse("admin:memories_reviewitem_bulk"), {"verb": "approve", "item": [item.pk]})
    yield "what was found", client.post(reverse("admin:search"), {"words": HOSTILE[:10]}, headers={"X-Palette": "1"})
    yield (
        "a refused tenant",
        client.post(page_of(person.tenant), {"signal_phrases": HOSTILE, "extraction_guidance": HOSTILE}),
    )


def test_every_page_after_a_form_escapes_it(admin: Client, known: dict[str, Any]) -> None:
    answers = dict(after_a_form(admin, known))
    assert {what: answer.status_code for what, answer in answers.items() if not shows_harmless(answer)} == {}


@pytest.mark.parametrize("kind", VERBS)
def test_a_refused_form_gives_it_back_escaped(admin: Client, known: dict[str, Any], kind: str) -> None:
    known[kind].refresh_from_db()
    words = dict.fromkeys(("content", "reason", "summary", "section"), HOSTILE)
    answers = [admin.post(page_of(known[kind], verb), {**words, "version": 99}) for verb in VERBS[kind]]
    assert all(answer.status_code in (400, 412) and shows_harmless(answer) for answer in answers)


def test_a_page_that_lets_it_through_is_seen(admin: Client, known: dict[str, Any]) -> None:
    page = admin.get(page_of(known["fact"]))
    assert shows_harmless(page)
    page.content = page.content.replace(b"&lt;script&gt;", b"<script>")
    assert not shows_harmless(page)
