"""Exports of both profiles, made as the worker makes them."""

import json

import pytest
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from memories.models import CaseType
from memories.privacy import export_schema
from tests.privacy import exports, lease

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    lease.stand_in(monkeypatch)


@pytest.mark.parametrize("profile", [CaseType.ACCESS, CaseType.PORTABILITY])
def test_data_is_as_its_schema_says(profile: str) -> None:
    written = exports.files(exports.made(exports.somebody(), profile))
    assert list(written) == ["data.json", "readable.html", "README.txt", "schema.json"]
    schema = json.loads(written["schema.json"])
    assert schema == json.loads(json.dumps(export_schema.document()))
    Draft202012Validator.check_schema(schema)
    told = json.loads(written["data.json"])
    faults = list(Draft202012Validator(schema, format_checker=FormatChecker()).iter_errors(told))
    assert faults == []
    assert told["counts"] == {name: len(told[name]) for name in told["counts"]}


def test_access_tells_every_store() -> None:
    told = exports.data(exports.made(exports.somebody()))
    assert {name: count for name, count in told["counts"].items() if not count} == {"exports": 0}
