"""The OpenAPI document and its page, served from here."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from memories.api.schema import DocumentOnce, YamlOnce
from tests.api.calls import CALLS
from tests.api.client import operations, schema


def test_it_is_served_as_openapi_3_1_to_everybody() -> None:
    answer = Client().get("/api/schema/?format=json")
    assert answer.status_code == 200
    assert answer.json()["openapi"].startswith("3.1")
    assert answer.json()["paths"].keys() == schema()["paths"].keys()


def test_many_who_ask_at_once_right_after_a_start_get_the_one_document_valid_and_without_warnings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, make = [], SchemaGenerator.get_schema

    def counted(*own: Any, **given: Any) -> Any:
        made.append(own)
        return make(*own, **given)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(DocumentOnce, "_document", {})
    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    GENERATOR_STATS.reset()
    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda _: Client().get("/api/schema/?format=json"), range(4))]
    assert {**GENERATOR_STATS._warn_cache, **GENERATOR_STATS._error_cache} == {}
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.content for answer in answers}) == len(made) == 1
    monkeypatch.setattr(jsonschema, "validate", validate)
    validate_schema(answers[0].json())  # type: ignore[no-untyped-call]


def validate(instance: Any, schema: Any) -> None:
    """As jsonschema does, which would look for the anchors of the standard anew at each reference: six seconds."""
    known = Registry[Any]().with_resource(schema["$id"], DRAFT202012.create_resource(schema)).crawl()
    jsonschema.Draft202012Validator(schema, registry=known).validate(instance)


def test_a_document_that_is_not_valid_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonschema, "validate", validate)
    broken = {**schema(), "paths": {"/api/v1/facts": {"get": {"parameters": 7}}}}
    with pytest.raises(jsonschema.ValidationError, match="7 is not of type 'array'"):
        validate_schema(broken)  # type: ignore[no-untyped-call]


def test_as_yaml_it_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written, write = [], OpenApiYamlRenderer.render

    def counted(*given: Any) -> Any:
        written.append(given)
        return write(*given)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(YamlOnce, "_written", (None, b""))
    monkeypatch.setattr(OpenApiYamlRenderer, "render", counted)
    kinds = ("application/vnd.oai.openapi", "application/yaml", "*/*")
    answers = [Client().get("/api/schema/", headers={"Accept": kind}) for kind in kinds]
    assert [answer.headers["Content-Type"].partition(";")[0] for answer in answers] == [*kinds[:2], kinds[0]]
    assert len({answer.content for answer in answers}) == len(written) == 1
    assert b"openapi: 3.1" in answers[0].content
    # The answer to what it cannot take is another one.
    assert Client().post("/api/schema/").status_code == 405


# What does not answer JSON.
# What an operation answers with, if it is not JSON alone.
KINDS = {
    "takePrivacyExport": ["application/zip"],
    "answerQuestion": ["application/json", "text/event-stream"],
}


def test_every_operation_is_described() -> None:
    for operation in CALLS:
        method, path = operations()[operation]
        found = schema()["paths"][path][method.lower()]
        assert found["summary"], operation
        assert found["security"] == [{"key": []}, {"keyAlone": []}], operation
        assert {"400", "401", "403", "406", "503"} <= found["responses"].keys(), operation
        assert ("404" in found["responses"]) or "{" not in path, operation
        assert ("415" in found["responses"]) == ("requestBody" in found), operation
        for status, answer in found["responses"].items():
            assert "X-Request-ID" in answer["headers"], operation
            good = KINDS.get(operation, ["application/json"])
            kinds = good if status.startswith("2") else ["application/problem+json"]
            assert sorted(answer.get("content", kinds)) == kinds, operation


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
