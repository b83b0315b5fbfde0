"""No page of the admin lets through what people wrote, in a hub full of hostile text; nor does a refused form."""

from typing import Any

import pytest
from django.test import Client

from memories.models import Operator
from tests.admin.pages import HOSTILE, LIVE_TAGS, page_of, shows_harmless
from tests.browser import world

pytestmark = pytest.mark.django_db
VERBS = {"fact": ("correct", "forget", "approve"), "episode": ("edit",), "reviewitem": ("reject", "merge", "edit")}


@pytest.fixture
def known(administrator: Operator, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The world of hostile texts, with one in place of each of them."""
    monkeypatch.setattr(world, "ALL", HOSTILE)
    monkeypatch.setattr(world, "STRINGS", (HOSTILE,))
    monkeypatch.setattr(world, "TURNS", [("user", "你好"), ("user", f"我对花生过敏 {HOSTILE}"), ("assistant", HOSTILE)])
    # Names are told apart by their ends.
    monkeypatch.setattr(world, "pieces", lambda size: [f"{HOSTILE}{size}-{number}" for number in range(10)])
    return world.made(administrator)


def test_every_page_escapes_it(administrator: Operator, known: dict[str, Any]) -> None:
    texts = {where: text for where, text, _ in world.pages(administrator, known)}
    assert {where: tag for where, text in texts.items() for tag in LIVE_TAGS if tag in text} == {}
    # They show it: it would be found.
    assert sum("&lt;script&gt;alert" in text for text in texts.values()) > 25


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
