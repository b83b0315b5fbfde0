"""CSV exports: what the list shows and no more, streamed, capped, harmless in a spreadsheet, and in the audit trail."""

import csv
import io
from typing import Any

import pytest
from django.contrib.admin import site
from django.db.models import Model
from django.test import Client

from memories.admin.lists import export
from memories.models import AuditEvent, EndUser, Fact, Operator
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, text_of
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


def test_every_list_has_columns_that_there_are(admin: Client) -> None:
    walk.records()
    listed = {model: columns for model, page in site._registry.items() if (columns := getattr(page, "csv_columns", ()))}
    assert len(listed) > 10
    for model, columns in listed.items():
        _, rows = exported(admin, model)
        assert rows, model
        assert {len(row) for row in rows} == {len(columns)}, model


def test_no_cell_is_a_formula_and_others_are_as_they_are() -> None:
    for formula in FORMULAS:
        _, line = export.lines(["content"], [(formula,)])
        (cell,) = next(csv.reader(io.StringIO(line, newline="")))
        assert cell.startswith("'"), formula
    for value in ("-1.5", "a=b", "", "对花生过敏", "O'Hara", 7, -7, None, True):
        _, line = export.lines(["content"], [(value,)])
        assert line.strip('"\r\n') == ("" if value is None else str(value)), value


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


def test_a_query_of_nonsense_is_no_server_error(admin: Client) -> None:
    for query in ("nothing=1", "q=%00", "content__nothing=1", "tenant__id__exact=x", "q=" + "x" * 2000):
        assert admin.post(f"{list_of(Fact)}export/", {"query": query}).status_code in (200, 400), query


def test_what_was_asked_for_is_kept_while_the_password_is_entered(administrator: Operator) -> None:
    stale, address = signed_in(administrator, fresh=False), f"{list_of(Fact)}export/"
    page = text_of(stale.post(address, {"query": "q=tea"}))
    assert 'name="fresh_password"' in page
    assert 'name="query" value="q=tea"' in page
    assert not AuditEvent.objects.filter(verb="export").exists()
    answer = stale.post(address, {"query": "q=tea", "fresh_password": "correct horse battery staple"})
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
