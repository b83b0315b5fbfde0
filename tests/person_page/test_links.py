"""A link opens its person's page, once and for a while; nobody else's link, form or frame does."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from memories.audit import Actor
from memories.conf import Rate
from memories.curation.people import page_links
from memories.exceptions import BeyondTrust
from memories.models import ActorKind, AuditEvent, EndUser, Fact, PersonLink
from memories.models.people.people import NOBODY
from memories.person_page import frame
from memoryhub.log_lines import masked
from tests import factories
from tests.api.client import HubClient
from tests.person_page.conftest import Own

SITE = "https://app.example.org"


def test_an_application_makes_a_link_that_opens_the_page_once(own: Own) -> None:
    _, secret = factories.api_key(own.person.tenant, scopes=["write"])
    answer = HubClient(secret).post("/person-links", {"user_id": "secret-id-7", "language": "en", "allow": ["forget"]})
    assert (answer.status_code, answer.json()["allow"]) == (201, ["forget"])
    address = answer.json()["url"].removeprefix(settings.PUBLIC_URL)
    factories.fact(own.person, "Bakes bread")
    opened = own.client.get(address)
    assert (opened.status_code, opened.headers["Location"]) == (303, "/me/")
    cookie = opened.cookies[frame.COOKIE]
    assert (cookie["httponly"], cookie["path"], cookie["samesite"]) == (True, "/me/", "Lax")
    page = own.get()
    assert "Bakes bread" in page
    assert "Forget" in page
    assert "Correct" not in page
    assert "secret-id-7" not in address + page
    # In the browser that opened it, the address leads back; in any other it is used up.
    assert own.client.get(address).status_code == 303
    replayed = Client().get(address)
    assert (replayed.status_code, "already used" in replayed.content.decode()) == (410, True)
    events = AuditEvent.objects.filter(object_type="PersonLink").order_by("id").values_list("actor_kind", "verb")
    assert list(events) == [("key", "create"), ("person", "open"), ("person", "view")]


def test_what_looks_ahead_takes_nothing(own: Own) -> None:
    link, address = own.link()
    assert own.client.head(address).status_code == 200
    assert own.client.get(address, headers={"Sec-Purpose": "prefetch"}).status_code == 405
    assert own.client.post(address).status_code == 405
    link.refresh_from_db()
    assert link.opened_at is None
    assert own.client.get(address).status_code == 303


def _expired(own: Own) -> str:
    return own.link(now=timezone.now() - timedelta(minutes=6))[1]


def _altered(own: Own) -> str:
    address = own.link()[1]
    return address[:-1] + ("A" if address[-1] != "A" else "B")


def _of_another_person(own: Own) -> str:
    """The row of one person with the signature of another's link."""
    other = Own(factories.end_user(own.person.tenant), own.key)
    return own.link()[1].partition(":")[0] + ":" + other.link()[1].partition(":")[2]


def _with_the_cookies_signature(own: Own) -> str:
    link, _ = own.link()
    return f"/me/open/{page_links._signed(link, page_links.SESSION_SALT)}"


def _page_off(own: Own) -> str:
    address = own.link()[1]
    type(own.person.tenant).objects.filter(pk=own.person.tenant_id).update(person_page=False)
    return address


def _key_revoked(own: Own) -> str:
    address = own.link()[1]
    type(own.key).objects.filter(pk=own.key.pk).update(revoked_at=timezone.now())
    return address


def _merged(own: Own) -> str:
    address = own.link()[1]
    other = factories.end_user(own.person.tenant)
    EndUser.objects.filter(pk=own.person.pk).update(merged_into=other, generation=2)
    return address


def _erased(own: Own) -> str:
    address = own.link()[1]
    PersonLink.objects.all().delete()
    EndUser.objects.filter(pk=own.person.pk).update(external_id=NOBODY)
    return address


@pytest.mark.parametrize(
    ("made", "status", "says"),
    [
        (_expired, 410, "not opened in time"),
        (_altered, 404, "does not work"),
        (_of_another_person, 404, "does not work"),
        (_with_the_cookies_signature, 404, "does not work"),
        (_page_off, 409, "switched off"),
        (_key_revoked, 410, "closed"),
        (_merged, 410, "closed"),
        (_erased, 404, "does not work"),
        (lambda _own: "/me/open/short", 404, "does not work"),
        (lambda _own: "/me/open/%00%FF:x", 404, "does not work"),
    ],
)
def test_other_links_are_refused_kindly(own: Own, made: Callable[[Own], str], status: int, says: str) -> None:
    answer = own.client.get(made(own))
    assert (answer.status_code, says in answer.content.decode()) == (status, True)
    assert frame.COOKIE not in answer.cookies
    own.get(status=404)


def test_a_link_opens_until_its_time_is_over(own: Own) -> None:
    now = timezone.now()
    own.client.get(own.link(now=now - timedelta(seconds=50), ttl=60)[1])
    own.get()
    late = Own(own.person, own.key)
    assert late.client.get(late.link(now=now - timedelta(seconds=61), ttl=60)[1]).status_code == 410
    late.get(status=404)


@pytest.mark.parametrize("ended", [_page_off, _key_revoked, _merged, _erased])
def test_a_session_ends_with_what_it_rests_on(own: Own, ended: Callable[[Own], str]) -> None:
    fact = factories.fact(own.person, "Bakes bread")
    own.open()
    token = page_links.form_token(PersonLink.objects.get())
    assert "Bakes bread" in own.get()
    ended(own)
    assert "Bakes bread" not in own.client.get("/me/").content.decode()
    assert own.post(f"facts/{fact.pk}/forget", token=token).status_code in (404, 409, 410)
    assert Fact.objects.get().status == "active"


def test_a_session_ends_by_itself_and_by_its_button(own: Own) -> None:
    link = own.open()
    PersonLink.objects.update(ends_at=timezone.now())
    own.get(status=410)
    PersonLink.objects.update(ends_at=timezone.now() + timedelta(minutes=1))
    own.get()
    cookie = own.client.cookies[frame.COOKIE].value
    assert "closed the page" in own.post("leave").content.decode()
    # Whoever kept the cookie has nothing of it.
    own.client.cookies[frame.COOKIE] = cookie
    own.get(status=410)
    link.refresh_from_db()
    assert link.ends_at


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("", {}),
        ("x" * 64, {}),
        (None, {"Sec-Fetch-Site": "cross-site"}),
        (None, {"Sec-Fetch-Site": "same-site"}),
    ],
)
def test_forms_of_other_sites_change_nothing(own: Own, token: str | None, headers: Any) -> None:
    fact = factories.fact(own.person)
    own.open()
    answer = own.post(f"facts/{fact.pk}/forget", token=token, headers=headers)
    assert (answer.status_code, "Nothing was changed" in answer.content.decode()) == (403, True)
    assert Fact.objects.get().status == "active"
    assert own.client.get(f"/me/facts/{fact.pk}/forget").status_code == 405
    assert own.post(f"facts/{fact.pk}/forget", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
    assert Fact.objects.get().status == "trashed", "the page's own form does it"


def test_the_form_of_another_session_changes_nothing(own: Own) -> None:
    fact = factories.fact(own.person)
    own.open()
    other = Own(factories.end_user(own.person.tenant), own.key)
    token = page_links.form_token(other.open())
    assert own.post(f"facts/{fact.pk}/forget", token=token).status_code == 403
    assert Fact.objects.get().status == "active"
    own.post(f"facts/{fact.pk}/forget")
    assert Fact.objects.get().status == "trashed"


def test_declared_sites_alone_may_frame_it(own: Own) -> None:
    own.open()
    answer = own.client.get("/me/")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] == "DENY"
    _, address = own.link(embed_origins=[SITE])
    opened = own.client.get(address)
    cookie = opened.cookies[frame.COOKIE]
    assert (cookie["samesite"], cookie["secure"], "Partitioned" in cookie.OutputString()) == ("None", True, True)
    for answer in (opened, own.client.get("/me/"), own.client.get("/me/facts/nothing")):
        if answer.status_code == 404:
            continue
        policy = answer.headers["Content-Security-Policy"]
        assert f"frame-ancestors {SITE};" in f"{policy};"
        assert "X-Frame-Options" not in answer.headers
    # What only says that there is no session any more says so in any frame: it has nothing to press.
    PersonLink.objects.update(ends_at=timezone.now())
    for answer in (own.client.get("/me/"), Client().get("/me/"), Client().get(address)):
        assert "frame-ancestors *;" in f"{answer.headers['Content-Security-Policy']};"
        assert "X-Frame-Options" not in answer.headers
        assert "<form" not in answer.content.decode()


def test_every_answer_keeps_to_itself(own: Own, others: Own) -> None:
    fact = factories.fact(own.person)
    _, address = own.link()
    answers = [own.client.get(address), own.client.get(address), own.client.get("/me/")]
    answers += [own.client.get(f"/me/facts/{fact.pk}")]
    answers += [Client().get(address), Client().get("/me/"), own.post(f"facts/{fact.pk}/forget")]
    for answer in answers:
        assert (answer.headers["Cache-Control"], answer.headers["X-Robots-Tag"]) == ("no-store", "noindex, nofollow")
        assert settings.SESSION_COOKIE_NAME not in answer.cookies
        assert settings.CSRF_COOKIE_NAME not in answer.cookies
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy
    assert masked(f"Gone: {address}") == "Gone: /me/open/…"


def test_an_operator_who_is_signed_in_is_nobody_here(own: Own) -> None:
    operator = factories.operator(is_superuser=True)
    own.client.force_login(operator)
    own.get(status=404)
    own.open()
    assert operator.username not in own.get()


def test_keys_make_links_to_their_own_people_alone(own: Own, others: Own) -> None:
    refused = HubClient(factories.api_key(own.person.tenant, scopes=["read", "ingest"])[1])
    assert refused.post("/person-links", {"user_id": "secret-id-7"}).status_code == 403
    theirs = HubClient(factories.api_key(own.person.tenant)[1])
    assert theirs.post("/person-links", {"user_id": others.person.external_id + "-x"}).status_code == 404
    actor = Actor(kind=ActorKind.KEY)
    own.key.writes_as = "agent"
    with pytest.raises(BeyondTrust):
        page_links.make_link(person=own.person, key=own.key, actor=actor, now=timezone.now())


def test_there_are_limits(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = factories.fact(own.person)
    link = own.open()
    token = page_links.form_token(link)
    monkeypatch.setattr(frame, "VIEWS", Rate(requests=2, seconds=60))
    monkeypatch.setattr(frame, "ACTS", Rate(requests=0, seconds=60))
    assert [own.client.get("/me/").status_code for _ in range(3)] == [200, 200, 429]
    answer = own.post(f"facts/{fact.pk}/forget", token=token)
    assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (429, True)
    assert Fact.objects.get().status == "active"


def test_what_is_over_for_long_is_deleted(own: Own) -> None:
    own.link(now=timezone.now() - page_links.KEPT - timedelta(minutes=1))
    kept, _ = own.link()
    assert page_links.sweep(timezone.now()) == 1
    assert PersonLink.objects.get() == kept
