"""The OpenAPI document and its page, served from here."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from memories.api.schema import DocumentOnce
from tests.api.calls import CALLS
from tests.api.client import operations, schema


def test_the_document_is_valid_and_without_warnings(tmp_path: Path) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(tmp_path / "schema.yaml"))


def test_it_is_served_as_openapi_3_1_to_everybody() -> None:
    answer = Client().get("/api/schema/?format=json")
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")
    assert answer.json()["paths"].keys() == schema()["paths"].keys()


def test_many_who_ask_at_once_right_after_a_start_get_the_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = [], SchemaGenerator.get_schema

    def counted(*own: Any, **given: Any) -> Any:
        made.append(own)
        return make(*own, **given)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(DocumentOnce, "_document", {})
    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda _: Client().get("/api/schema/?format=json"), range(4))]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.content for answer in answers}) == len(made) == 1


# What does not answer JSON.
KINDS = {"takePrivacyExport": "application/zip"}


@pytest.mark.parametrize("operation", CALLS)
def test_every_operation_is_described(operation: str) -> None:
    method, path = operations()[operation]
    found = schema()["paths"][path][method.lower()]
    assert found["summary"]
    assert found["security"] == [{"key": []}, {"keyAlone": []}]
    assert {"400", "401", "403", "406", "503"} <= found["responses"].keys()
    assert ("404" in found["responses"]) or "{" not in path
    assert ("415" in found["responses"]) == ("requestBody" in found)
    for status, answer in found["responses"].items():
        assert "X-Request-ID" in answer["headers"]
        kind = KINDS.get(operation, "application/json") if status.startswith("2") else "application/problem+json"
        assert list(answer.get("content", {kind: None})) == [kind]


def alternatives(document: Any) -> Iterator[list[Any]]:
    """Every `oneOf` in it."""
    if isinstance(document, dict):
        yield from [document["oneOf"]] if "oneOf" in document else []
        document = list(document.values())
    for inner in document if isinstance(document, list) else ():
        yield from alternatives(inner)


def test_no_value_fits_two_alternatives() -> None:
    found = list(alternatives(schema()))
    assert len(found) >= 3
    # What allows anything allows what another one does.
    assert not [one for one in found if {} in one]


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = Client().get("/api/docs/").content.decode()
    assets = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(assets) >= 4
    for asset in assets:
        assert asset.startswith("/static/") or asset == "/api/docs/?script="
        assert Client().get(asset).status_code == 200
    assert not re.search(r"https?://", page)


def test_the_root_leads_to_the_admin() -> None:
    assert Client().get("/").headers["Location"] == "/admin/"
