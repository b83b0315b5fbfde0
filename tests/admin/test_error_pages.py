"""What stands in the place of a page: with a way back, in the reader's language, with nothing of what was asked for."""

import uuid

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client
from django.urls import reverse

from memories.exceptions import HubBusy
from memories.models import Fact
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, text_of


def fact_page(key: object) -> str:
    return reverse("admin:memories_fact_change", args=[key])


def test_what_is_not_there_leads_back(admin: Client) -> None:
    answer = admin.get(fact_page(uuid.uuid4()))
    assert answer.status_code == 404
    assert "Page not found" in text_of(answer)
    assert f'href="{reverse("admin:index")}"' in text_of(answer)


def test_what_one_may_not_do_says_who_can(staff: Client) -> None:
    answer = staff.get(list_of(Fact))
    assert answer.status_code == 403
    assert "Ask an administrator." in text_of(answer)


@pytest.mark.django_db
def test_they_speak_the_readers_language() -> None:
    answer = signed_in(factories.operator(language="zh-hans")).get("/admin/nowhere/")
    assert answer.status_code == 404
    assert "找不到页面" in text_of(answer)
    assert 'lang="zh-hans"' in text_of(answer)
    assert "nowhere" not in text_of(answer)


@pytest.mark.django_db
def test_who_would_wait_too_long_is_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(**_given: object) -> None:
        raise HubBusy(3)

    page = reverse("admin:memories_enduser_seen", args=[factories.end_user().pk])
    operator = signed_in(factories.operator(language="zh-hans"))
    assert operator.get(page).status_code == 200
    monkeypatch.setattr("memories.context.context.build", busy)
    answer = operator.get(page)
    assert (answer.status_code, answer["Retry-After"]) == (503, "3")
    assert "Memory Hub 正忙" in text_of(answer)


def test_a_form_that_is_too_old_says_that_nothing_was_changed(db: None) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(factories.operator())
    answer = strict.post(reverse("admin:preferences"), {"language": "en"})
    assert answer.status_code == 403
    assert "Nothing was changed" in text_of(answer)


@pytest.mark.parametrize(
    ("error", "status", "again"), [(RuntimeError, 500, None), (OperationalError, 503, "5"), (InterfaceError, 503, "5")]
)
def test_a_failure_of_ours_leads_back_as_well(
    admin: Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception], status: int, again: str | None
) -> None:
    def fails(*args: object, **kwargs: object) -> None:
        raise error("secret of somebody")

    monkeypatch.setattr("memories.admin.facts.pages.FactPage.gather", fails)
    admin.raise_request_exception = False
    fact = factories.fact(factories.end_user())
    answer = admin.get(fact_page(fact.pk))
    assert (answer.status_code, answer.headers.get("Retry-After")) == (status, again)
    assert f'href="{reverse("admin:index")}"' in text_of(answer)
    assert "secret" not in text_of(answer)


def test_elsewhere_they_stay_bare(client: Client) -> None:
    """There no style sheet may be loaded."""
    answer = client.get("/nowhere")
    assert answer.status_code == 404
    assert "stylesheet" not in text_of(answer)
