"""The command palette: pages, a person by the caller's id, anything of ours by its UUID; nothing in an address."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import AuditEvent, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited, records

pytestmark = pytest.mark.django_db


def find(client: Client, words: str) -> Any:
    response = client.post(reverse("admin:search"), {"words": words}, headers={"X-Palette": "1"})
    assert response.status_code == 200
    return response


def links(client: Client, words: str, *, help_too: bool = False) -> list[str]:
    found = [hit.link for hit in find(client, words).context["hits"]]
    return [link for link in found if help_too or not link.startswith(reverse("admin:help"))]


def test_a_person_is_found_by_the_beginning_of_the_callers_id(admin: Client) -> None:
    tenant = factories.tenant()
    alice = factories.end_user(tenant, external_id="alice")
    named = factories.end_user(tenant, external_id="alicia", display_name="Alice")
    factories.end_user(tenant, external_id="malice")
    assert links(admin, "alice")[0] == page_of(alice)
    assert len(links(admin, "ali")) == 2
    assert links(admin, "lic") == [page_of(named)]


def test_a_person_is_found_by_any_part_of_the_name(admin: Client) -> None:
    person = factories.end_user(external_id="u-1", display_name="华桂珍 (Hua Guizhen)")
    factories.end_user(external_id="u-2", display_name="Li Wei")
    for words in ("华", "桂珍", "guizhen", "u-1"):
        assert links(admin, words) == [page_of(person)]
    # One Latin letter would fit most names.
    assert page_of(person) not in links(admin, "g")


def suggested(client: Client, tenant: str, words: str, kind: str = "people", person: str = "") -> list[str]:
    """The ids that a field of this kind offers, in a form that may name an end user."""
    given = {"words": words, "tenant": tenant, "person": person}
    response = client.post(reverse("admin:search"), given, headers={"X-Palette": kind})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    return re.findall(r'<option value="([^"]+)"', response.content.decode())


def test_a_field_offers_end_users_of_its_tenant(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    person = factories.end_user(external_id="u-1", display_name="华桂珍 (Hua Guizhen)")
    factories.end_user(external_id="u-2", display_name="Hua of another tenant")
    tenant = str(person.tenant_id)
    may_see_people = staff_who_may("view_enduser")
    for words in ("u-", "桂珍", "guizhen"):
        assert suggested(may_see_people, tenant, words) == ["u-1"]
    # Nothing yet, nobody's tenant, no right to see people, and a tenant of others.
    assert suggested(admin, tenant, "") == suggested(admin, "", "u-") == suggested(admin, "x", "u-") == []
    assert suggested(staff_who_may("view_fact"), tenant, "u-") == []
    limited_to_others = signed_in(limited(factories.tenant()))
    assert suggested(limited_to_others, tenant, "u-") == []


def test_a_field_offers_agents_and_sessions(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    anna = factories.end_user(external_id="u-1", display_name="Anna")
    bert = factories.end_user(anna.tenant, external_id="u-2")
    for person, agent, session in ((anna, "sales-bot", "s-1"), (bert, "support", "s-2"), (bert, "", "t-3")):
        factories.session(person, agent_id=agent, session_id=session)
    factories.session(factories.end_user(), agent_id="sales-other", session_id="s-9")
    tenant = str(anna.tenant_id)
    may_see_sessions = staff_who_may("view_session", "view_enduser")
    for client in (admin, may_see_sessions):
        # Before a letter is typed, too; by any part of an agent's name, and by the beginning of a session's id.
        assert suggested(client, tenant, "", "agents") == ["sales-bot", "support"]
        assert suggested(client, tenant, "BOT", "agents") == ["sales-bot"]
        assert sorted(suggested(client, tenant, "", "sessions")) == ["s-1", "s-2", "t-3"]
        assert sorted(suggested(client, tenant, "s-", "sessions")) == ["s-1", "s-2"]
        # Those of the end user whom the form names, by id or by name.
        assert suggested(client, tenant, "", "agents", "u-2") == ["support"]
        assert suggested(client, tenant, "s-", "sessions", "anna") == ["s-1"]
        assert suggested(client, tenant, "", "sessions", "nobody") == []
    # No right to see sessions, nobody's tenant, and a tenant of others.
    limited_to_others = signed_in(limited(factories.tenant()))
    for kind in ("agents", "sessions"):
        assert suggested(staff_who_may("view_enduser"), tenant, "", kind) == suggested(admin, "", "", kind) == []
        assert suggested(limited_to_others, tenant, "", kind) == []


def test_a_case_is_found_by_its_reference_and_its_number(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    case = factories.privacy_case(factories.end_user(), reference="DSR-2026/17")
    factories.privacy_case(factories.end_user(), reference="DSR-2025/3")
    assert links(admin, "2026/17") == [page_of(case)]
    assert page_of(case) in links(admin, str(case.pk)[:30])
    assert links(admin, str(case.pk)) == [page_of(case)]
    assert links(staff_who_may("view_enduser"), "2026/17") == []
    limited_to_others = signed_in(limited(factories.tenant()))
    assert links(limited_to_others, "2026/17") == []


def test_anything_of_ours_is_found_by_its_uuid(admin: Client) -> None:
    for record in records():
        assert links(admin, str(record.pk)) == [page_of(record)]


def test_pages_are_found_by_their_titles(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    assert reverse("admin:memories_apikey_changelist") in links(admin, "api")
    assert len(links(admin, "")) > 5
    assert links(staff_who_may("view_fact"), "api") == []


def test_it_finds_what_the_operator_may_see_alone(staff_who_may: Callable[..., Client]) -> None:
    own, other = records(), records()
    client = signed_in(limited(own[0].tenant))
    assert [links(client, str(record.pk)) for record in other] == [[]] * len(other)
    assert links(client, other[0].external_id) == []
    assert links(client, str(own[0].pk)) == [page_of(own[0])]
    nobody = staff_who_may()
    assert links(nobody, own[0].external_id) == []
    assert links(nobody, str(own[0].pk)) == []


def test_memories_are_found_by_their_words(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    person = factories.end_user(external_id="u-1", display_name="Anna")
    said = [("user", "I am allergic to peanuts, and I have been for years."), ("assistant", "Noted.")]
    session = factories.session(person, said)
    fact = factories.fact(person, "Is allergic to peanuts")
    episode = factories.episode(session, "Told which nuts she cannot eat: peanuts")
    file = factories.memory_file(person, path="/notes/food.md", content="No peanuts for Anna")
    factories.fact(person, "Likes tea")
    turn = f"{page_of(session)}?page=1#turn-1"
    found = links(admin, "peanut")
    assert found == [page_of(fact), page_of(episode), page_of(file), turn]
    # All of the words, in any order and case; in Chinese two characters are enough.
    assert links(admin, "PEANUTS allergic") == [page_of(fact), turn]
    tea = factories.fact(person, "喜欢喝绿茶")
    assert links(admin, "绿茶") == [page_of(tea)]
    # Of each kind as far as the operator may see it, and of the own tenants alone.
    permissions = {"view_fact": [page_of(fact)], "view_memoryfile": [page_of(file)], "view_session": [turn]}
    for permission, seen in permissions.items():
        assert links(staff_who_may(permission), "peanut") == seen
    assert links(signed_in(limited(factories.tenant())), "peanut") == []


def test_it_leads_to_the_searches(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    tenant = factories.tenant()
    page = text_of(find(admin, "any <b>words</b>"))
    assert "Search facts for “any &lt;b&gt;words&lt;/b&gt;”" in page
    assert f'value="{tenant.pk}"' in page
    assert reverse("admin:said") in page
    assert "Search" not in text_of(find(staff_who_may("view_enduser"), "any words"))
    # A Chinese word may be one letter: too little for the palette itself, enough for the lists.
    assert "Search facts for “茶”" in text_of(find(admin, "茶"))
    assert "Search facts" not in text_of(find(admin, "t"))
    # Of several tenants the page of that search asks for one.
    factories.tenant()
    assert 'name="tenant"' not in text_of(find(admin, "any words"))
    asked = admin.post(reverse("admin:said"), {"query": "any words"})
    assert (asked.status_code, asked.context["form"]["query"].value()) == (200, "any words")


def test_a_question_finds_the_help(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    help_page = reverse("admin:help")
    for words, job in (
        ("how do I erase somebody", "erase"), ("delete a user", "erase"), ("怎么删除一个人的数据", "erase"),
        ("who changed this", "trail"), ("undo what an agent did", "roll-back"), ("local model", "model"),
        ("webhooks", "events"), ("what did the agent know yesterday", "then"),
    ):  # fmt: skip
        assert f"{help_page}#{job}" in links(admin, words, help_too=True), words
    for words in ("peanut", "zhang", "how do I", "为什么"):
        assert not [link for link in links(admin, words, help_too=True) if help_page in link], words
    assert links(staff_who_may("view_fact"), "how do I erase somebody", help_too=True) == []


def test_turns_that_it_shows_are_told_to_the_trail_once_a_minute(admin: Client) -> None:
    person = factories.end_user()
    factories.session(person, [("user", "I am allergic to peanuts")])
    for words in ("pea", "pean", "peanut"):
        assert links(admin, words)
    assert links(admin, "walnut") == []
    [event] = AuditEvent.objects.filter(verb="search")
    assert (event.object_type, event.counts) == ("Tenant", {"found": 1})
    assert "pea" not in str(AuditEvent.objects.values())


def test_words_in_an_address_are_ignored(admin: Client) -> None:
    factories.end_user(external_id="alice")
    response = admin.get(reverse("admin:search"), {"words": "alice", "s": "alice"})
    assert response.context["words"] == ""
    assert "alice" not in text_of(response)


def test_it_works_as_a_page_of_its_own(admin: Client) -> None:
    person = factories.end_user(external_id="alice")
    response = admin.post(reverse("admin:search"), {"words": "alice"})
    assert page_of(person) in text_of(response)
    assert "no-store" in response["Cache-Control"]


def test_nonsense_finds_nothing_and_breaks_nothing(admin: Client) -> None:
    factories.end_user(external_id="alice")
    for words in ("", "\x00", "x" * 5000, "%", "_", "' OR 1=1", "0" * 32):
        assert "alice" not in text_of(find(admin, words)), words


def test_it_asks_to_sign_in(client: Client, administrator: Operator) -> None:
    assert client.post(reverse("admin:search"), {"words": "x"}).status_code == 302
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(administrator)
    assert strict.post(reverse("admin:search"), {"words": "x"}).status_code == 403
