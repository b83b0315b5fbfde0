"""Roll back in the admin: the form, what it says before, what it does, its undo, and who may."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories import audit
from memories.audit import Actor
from memories.models import AuditEvent, ChangeSet, EndUser, Fact, Session
from tests import factories
from tests.admin.pages import HOSTILE, page_of, shows_harmless, text_of
from tests.factories import NOW

MAY = ("view_fact", "change_fact", "change_session")


@pytest.fixture
def address(db: None) -> str:
    return reverse("admin:rollback")


@pytest.fixture
def session(db: None) -> Session:
    """A session whose run made one fact."""
    session = factories.session(factories.end_user(external_id="华桂珍"), agent_id="evil")
    run = factories.run(session)
    fact = factories.fact(session.end_user, HOSTILE, extraction=run)
    audit.revise(fact=fact, verb="extract", actor=Actor.run(run), before={}, reason="", now=NOW)
    return session


def named(of: Session, **over: Any) -> dict[str, Any]:
    return {"tenant": of.tenant_id, "session": of.pk, **over}


def test_records_lead_to_a_form_that_knows_them(admin: Client, session: Session, address: str) -> None:
    key, _ = factories.api_key(session.tenant)
    for name, record in (("session", session), ("person", session.end_user), ("key", key)):
        link = f"{address}?tenant={session.tenant_id}&{name}={record.pk}"
        assert link.replace("&", "&amp;") in text_of(admin.get(page_of(record)))
        shown = record.external_id if isinstance(record, (EndUser, Session)) else str(record.pk)
        assert shown in text_of(admin.get(link))


def test_the_preview_says_what_goes_and_nothing_goes_yet(admin: Client, session: Session, address: str) -> None:
    page = admin.post(address, named(session))
    assert (page.status_code, shows_harmless(page)) == (200, True)
    assert '<dd id="trashed">1</dd>' in text_of(page)
    assert f"<dt>Session</dt><dd>{session.external_id}</dd>" in text_of(page)
    assert (Fact.objects.get().status, AuditEvent.objects.count()) == ("active", 0)


def test_where_nothing_would_change_there_is_nothing_to_confirm(admin: Client, session: Session, address: str) -> None:
    assert 'name="confirmed"' in text_of(admin.post(address, named(session)))
    Fact.objects.update(status="trashed")
    page = text_of(admin.post(address, named(session)))
    assert "Nothing would change" in page
    assert 'name="confirmed"' not in page


def test_its_period_is_said_like_other_moments(admin: Client, session: Session, address: str) -> None:
    page = text_of(admin.post(address, named(session, since="2026-01-01T00:00")))
    assert "<dd>1 Jan 2026, 00:00:00 UTC</dd>" in page


def test_confirmed_it_is_done_and_can_be_undone_once(admin: Client, session: Session, address: str) -> None:
    done: Any = admin.post(address, named(session, confirmed=1, reason="poisoned"))
    event = AuditEvent.objects.get()
    assert (done.status_code, event.verb, event.counts["trashed"]) == (302, "roll_back", 1)
    assert Fact.objects.get().status == "trashed"
    assert "Undo</button>" in text_of(admin.get(done.url))
    assert [admin.post(done.url).status_code for _ in range(2)] == [302, 200]
    assert Fact.objects.get().status == "active"
    page = text_of(admin.get(done.url))
    assert 'id="undone"' in page
    # What is none is not counted.
    assert ("<dt>Restored facts</dt><dd>1</dd>" in page, "Restored memory files" in page) == (True, False)
    assert AuditEvent.objects.filter(verb="undo_roll_back").count() == 1


def test_the_result_says_what_was_chosen(admin: Client, session: Session, address: str) -> None:
    key, _ = factories.api_key(session.tenant, name="poisoner")
    chosen = named(session, agent="Evil", since="2026-01-01T00:00", until="2026-12-01T00:00", confirmed=1)
    done: Any = admin.post(address, chosen)
    shown = text_of(admin.get(done.url))
    assert f'<dt>Session</dt><dd><a href="{page_of(session)}"><bdi>{session.external_id}</bdi></a></dd>' in shown
    assert "<dt>Agent</dt><dd><bdi>evil</bdi></dd>" in shown
    assert "<dt>Since</dt><dd>1 Jan 2026, 00:00:00 UTC</dd>" in shown
    assert "<dt>Until</dt><dd>1 Dec 2026, 00:00:00 UTC</dd>" in shown
    assert "<dt>API key</dt>" not in shown
    by_key: Any = admin.post(address, {"tenant": session.tenant_id, "key": key.pk, "confirmed": 1})
    assert "<dt>API key</dt><dd><bdi>poisoner" in text_of(admin.get(by_key.url))


def test_a_session_that_is_deleted_since_is_said_to_be(admin: Client, session: Session, address: str) -> None:
    done: Any = admin.post(address, named(session, confirmed=1))
    session.delete()
    assert "<dt>Session</dt><dd>deleted since</dd>" in text_of(admin.get(done.url))


def test_what_was_chosen_of_a_person_goes_with_them(admin: Client, session: Session, address: str) -> None:
    """Also where it took nothing back: the choice names their session."""
    Fact.objects.update(status="trashed")
    admin.post(address, named(session, confirmed=1))
    assert ChangeSet.objects.get().selected == {"session": str(session.pk)}
    session.end_user.delete()
    assert not ChangeSet.objects.exists()


def test_what_names_nothing_is_refused(admin: Client, session: Session, address: str) -> None:
    nothing = "01a201b8-2386-7e1d-b4b8-42d7243c21a1"
    for wrong in (
        {"session": ""}, {"session": "nonsense"}, {"session": nothing}, {"person": nothing}, {"tenant": ""},
        {"since": "yesterday"}, {"tenant": factories.tenant().pk},
    ):  # fmt: skip
        page = admin.post(address, named(session, confirmed=1, **wrong))
        assert (page.status_code, "Not saved." in text_of(page)) == (400, True), wrong
    assert Fact.objects.get().status == "active"


def test_the_end_user_is_found_by_name_and_stays_the_same(admin: Client, session: Session, address: str) -> None:
    """Somebody else gets the name between the preview and the confirmation."""
    EndUser.objects.update(display_name="Hua Guizhen")
    other = factories.end_user(session.tenant, external_id="u-2", display_name="Ben")
    preview = admin.post(address, named(session, session=session.external_id, person="guizhen"))
    assert "<dd>Hua Guizhen · 华桂珍</dd>" in text_of(preview)
    hidden = {field.name: field.value() or "" for field in preview.context["form"]}
    assert (hidden["person"], hidden["session"]) == (str(session.end_user_id), str(session.pk))
    EndUser.objects.filter(pk=other.pk).update(display_name="Another Guizhen")
    assert admin.post(address, {**hidden, "confirmed": 1}).status_code == 302
    assert Fact.objects.get().status == "trashed"
    several = admin.post(address, named(session, person="guizhen"))
    assert (several.status_code, "u-2, 华桂珍" in text_of(several)) == (400, True)


def test_a_session_id_that_two_end_users_have_needs_one_of_them(admin: Client, session: Session, address: str) -> None:
    twin = factories.session(
        factories.end_user(session.tenant, external_id="u-2"), session_id=session.external_id, agent_id="evil"
    )
    by_name = named(session, session=session.external_id)
    assert admin.post(address, by_name).status_code == 400
    assert admin.post(address, {**by_name, "person": "u-2"}).status_code == 200
    link = text_of(admin.get(f"{address}?tenant={session.tenant_id}&session={twin.pk}"))
    assert str(twin.pk) in link


def test_an_unknown_roll_back_has_no_page(admin: Client, session: Session) -> None:
    assert admin.get(reverse("admin:rolled_back", args=[session.pk])).status_code == 404


def test_who_lacks_a_permission_may_not(staff_who_may: Callable[..., Client], session: Session, address: str) -> None:
    for missing in MAY:
        few = staff_who_may(*(name for name in MAY if name != missing))
        assert few.get(address).status_code == few.post(address, named(session, confirmed=1)).status_code == 403
    assert Fact.objects.get().status == "active"
    all_of_them = staff_who_may(*MAY)
    assert all_of_them.post(address, named(session, confirmed=1)).status_code == 302
