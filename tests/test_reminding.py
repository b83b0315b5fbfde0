"""Mail to operators: who asked for it, of what they may see, once, without anybody's name."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Permission
from django.core import mail

from memories import reminding
from memories.models import EndUser, Operator, OperatorMail, PrivacyCase, ReviewItem
from memories.queue import backlog, leases
from tests import factories
from tests.admin.conftest import signed_in
from tests.database import at_once
from tests.factories import NOW

pytestmark = pytest.mark.django_db
# The database's clock is the present, and leases follow it.
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _sends_mail(settings: LazySettings) -> None:
    settings.MEMORYHUB_SENDS_MAIL = True
    settings.PUBLIC_URL = "https://hub.example"


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="anna-of-leiden", display_name="Anna of Leiden")


def reader(name: str = "dpo", *permissions: str, **over: Any) -> Operator:
    given = {"email": f"{name}@hub.example", "is_superuser": False, "mail_cases": True, "mail_queues": True, **over}
    operator = factories.operator(username=name, **given)
    wanted = permissions or ("view_privacycase", "view_reviewitem", "view_session")
    operator.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    return operator


def received() -> list[tuple[str, str]]:
    """Who was sent what since the last look."""
    found = [(sent.to[0], str(sent.subject)) for sent in mail.outbox]
    mail.outbox.clear()
    return found


def case_of(person: EndUser, **over: Any) -> PrivacyCase:
    return factories.privacy_case(person, **{"reference": "letter of Anna", "created_at": NOW, **over})


def test_a_case_is_mailed_when_it_is_opened_and_near_its_day_and_once_each(person: EndUser) -> None:
    reader()
    case = case_of(person)
    case.refresh_from_db()
    found = []
    for after in (timedelta(), DAY / 24, case.due_at - NOW - 6 * DAY, case.due_at - NOW - 5 * DAY,
                  case.due_at - NOW - DAY, case.due_at - NOW + DAY, case.due_at - NOW + 2 * DAY):  # fmt: skip
        reminding.remind(now=NOW + after)
        assert not any("Anna" in f"{sent.subject}{sent.body}" or "anna" in sent.body for sent in mail.outbox)
        assert all(f"/{case.pk}/" in sent.body and person.tenant.slug in sent.body for sent in mail.outbox)
        found.append([subject for _to, subject in received()])
    opened, due = (f"Memory Hub: a privacy case is {state}" for state in ("opened", "near its day"))
    assert found == [[opened], [], [due], [], [due], [due], []]


def test_who_did_not_ask_or_may_not_see_it_gets_none(person: EndUser, settings: LazySettings) -> None:
    reader("asked-for-nothing", mail_cases=False)
    reader("may-not", "view_fact")
    reader("elsewhere", all_tenants=False)
    reader("without-address", email="")
    reader("left", is_active=False)
    here = reader("here", all_tenants=False, language="zh-hans")
    here.tenants.set([person.tenant])
    case_of(person)
    settings.MEMORYHUB_SENDS_MAIL = False
    assert reminding.remind(now=NOW) == 0
    settings.MEMORYHUB_SENDS_MAIL = True
    assert reminding.remind(now=NOW) == 1
    [(to, subject)] = received()
    assert to == "here@hub.example"
    assert subject.startswith("Memory Hub")
    assert "privacy" not in subject


def test_a_mail_that_fails_is_sent_later_and_not_if_the_case_is_over(
    person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader()
    case = case_of(person)
    with monkeypatch.context() as broken:
        broken.setattr(reminding, "send_mail", _refuse)
        assert reminding.remind(now=NOW) == 0
    waiting = OperatorMail.objects.get()
    assert (waiting.sent_at, waiting.failure, waiting.attempts) == (None, reminding.FAILED, 1)
    assert reminding.remind(now=NOW) == 0
    leases.revoke(OperatorMail.objects.all())
    PrivacyCase.objects.filter(pk=case.pk).update(state="refused", refusal="unfounded")
    assert reminding.remind(now=NOW) == 0
    assert (received(), OperatorMail.objects.get().sent_at) == ([], NOW)


def test_long_queues(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    reader()
    monkeypatch.setattr(backlog, "overdue_seconds", lambda: 899.0)
    item = factories.review_item(factories.fact(person, "Likes tea", status="pending"), created_at=NOW)
    assert reminding.remind(now=NOW + 6 * DAY) == 0
    monkeypatch.setattr(backlog, "overdue_seconds", lambda: 900.0)
    assert reminding.remind(now=NOW + 7 * DAY) == 2
    assert sorted(subject for _to, subject in received()) == [
        "Memory Hub: extraction falls behind",
        "Memory Hub: review falls behind",
    ]
    ReviewItem.objects.filter(pk=item.pk).update(state="settled", decided_at=NOW)
    assert reminding.remind(now=NOW + 7 * DAY) == 0


@pytest.mark.django_db(transaction=True)
def test_two_workers_send_one_mail(person: EndUser) -> None:
    reader()
    case_of(person)
    assert sorted(map(str, at_once(2, lambda _: reminding.remind(now=NOW)))) == ["0", "1"]
    assert len(received()) == 1


def test_operators_choose_on_their_preferences(settings: LazySettings) -> None:
    operator = factories.operator(email="me@hub.example")
    browser = signed_in(operator)
    given = {"language": "", "time_zone": "UTC", "mail_cases": "on"}
    assert browser.post("/admin/preferences/", given).status_code == 302
    operator.refresh_from_db()
    assert (operator.mail_cases, operator.mail_queues) == (True, False)
    settings.MEMORYHUB_SENDS_MAIL = False
    assert "mail_cases" not in browser.get("/admin/preferences/").content.decode()
    browser.post("/admin/preferences/", {"language": "", "time_zone": "UTC"})
    operator.refresh_from_db()
    assert operator.mail_cases


def _refuse(*_args: Any) -> None:
    raise OSError("the mail server is away")
