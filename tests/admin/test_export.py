"""CSV exports: what the list shows and no more, streamed, capped, harmless in a spreadsheet, and in the audit trail."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from memories.admin.lists import export
from memories.models import AuditEvent, EndUser, Fact, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, text_of
from tests.admin.test_access import MODELS
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db

FORMULAS = [
    "=1+1", "+1+1", "-1+cmd", "@SUM(A1)", "|calc", "%0A=1", "\t=1+1", "\r=1+1", "\n=1+1", " =1+1", "＝1+1", "＋1",
    "－1+1", "＠SUM", '=HYPERLINK("http://x.test")', "=cmd|' /C calc'!A0",
]  # fmt: skip


def exported(client: Client, model: type[Model], query: str = "") -> tuple[Any, list[dict[str, str]]]:
    response = client.post(f"{list_of(model)}export/", {"query": query})
    assert response.status_code == 200
    text = b"".join(response).decode("utf-8-sig")
    return response, list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_file_holds_what_the_list_shows(admin: Client) -> None:
    person = factories.end_user(external_id="u1")
    factories.fact(person, "对花生过敏", pinned=True, tags=["food", "care"])
    factories.fact(person, "Likes tea")
    response, rows = exported(admin, Fact, "tab=pinned&q=花生")
    assert [(row["content"], row["tags"], row["end_user_external_id"]) for row in rows] == [
        ("对花生过敏", "food; care", "u1")
    ]
    assert rows[0]["created_at"].endswith("+00:00")
    assert response.streaming
    assert "no-store" in response["Cache-Control"]
    assert "u1" not in response["Content-Disposition"]


@pytest.mark.parametrize("model", export.COLUMNS)
def test_every_list_has_columns_that_there_are(admin: Client, model: type[Model]) -> None:
    person = factories.end_user()
    factories.episode(factories.session(person))
    factories.api_key(person.tenant)
    _, rows = exported(admin, model)
    assert all(len(row) == len(export.COLUMNS[model]) for row in rows)


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula(formula: str) -> None:
    _, line = export.lines(["content"], [(formula,)])
    (cell,) = next(csv.reader(io.StringIO(line, newline="")))
    assert cell.startswith("'")


@pytest.mark.parametrize("value", ["-1.5", "a=b", "", "对花生过敏", "O'Hara", 7, -7, None, True])
def test_other_cells_are_as_they_are(value: object) -> None:
    _, line = export.lines(["content"], [(value,)])
    assert line.strip('"\r\n') == ("" if value is None else str(value))


def test_an_export_leaves_a_line_without_content(admin: Client) -> None:
    factories.fact(factories.end_user(), "Likes tea")
    response, _ = exported(admin, Fact)
    event = AuditEvent.objects.get(verb="export")
    assert (event.object_type, event.counts) == ("Fact", {"rows": 1})
    assert str(event.object_id) in response["Content-Disposition"]


def test_an_export_has_an_end(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST", 2)
    for _ in range(3):
        factories.end_user()
    response, rows = exported(admin, EndUser)
    assert len(rows) == 2
    assert "first-2" in response["Content-Disposition"]
    assert AuditEvent.objects.get(verb="export").counts == {"rows": 2}


def test_an_operator_exports_their_own_tenants_alone() -> None:
    own, other = factories.end_user(), factories.end_user()
    client = signed_in(limited(own.tenant))
    _, rows = exported(client, EndUser)
    assert [row["id"] for row in rows] == [str(own.pk)]
    assert AuditEvent.objects.get(verb="export").tenant_uuid == own.tenant_id
    assert other.external_id not in str(rows)


def test_who_may_export(staff_who_may: Callable[..., Client], admin: Client) -> None:
    factories.end_user()
    address = f"{list_of(EndUser)}export/"
    assert staff_who_may("view_enduser").post(address).status_code == 403
    assert staff_who_may("export_tenant").post(address).status_code == 403
    reader = staff_who_may("view_enduser", "export_tenant")
    assert reader.post(address).status_code == 200
    assert admin.get(address).status_code == 405
    assert address in text_of(reader.get(list_of(EndUser)))
    assert address not in text_of(staff_who_may("view_enduser").get(list_of(EndUser)))


def test_a_list_without_columns_is_not_exported(admin: Client) -> None:
    left = [model for model in MODELS if model not in export.COLUMNS]
    assert left
    assert {admin.post(f"{list_of(model)}export/").status_code for model in left} == {403}


@pytest.mark.parametrize(
    "query", ["nothing=1", "q=%00", "content__nothing=1", "tenant__id__exact=x", "q=" + "x" * 2000]
)
def test_a_query_of_nonsense_is_no_server_error(admin: Client, query: str) -> None:
    assert admin.post(f"{list_of(Fact)}export/", {"query": query}).status_code in (200, 400)


@pytest.mark.parametrize("model", export.COLUMNS)
def test_every_file_wants_a_fresh_password(administrator: Operator, model: type[Model]) -> None:
    addresses = [reverse("admin:memories_auditevent_lines")] if model is AuditEvent else []
    for address in (*addresses, f"{list_of(model)}export/"):
        exported = AuditEvent.objects.filter(verb="export").count()
        stale = signed_in(administrator, fresh=False)
        answer = stale.post(address, {"query": "q=tea"})
        assert answer.status_code == 403
        page = text_of(answer)
        assert 'name="fresh_password"' in page
        assert 'name="query" value="q=tea"' in page
        assert AuditEvent.objects.filter(verb="export").count() == exported
        given = {"query": "q=tea", "fresh_password": "correct horse battery staple"}
        answer = stale.post(address, given)
        assert answer.status_code == 200
        assert "attachment" in answer["Content-Disposition"]
