"""Generated calls of every operation, valid and not: no server error, nothing undocumented. Scopes: test_scopes.py."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import OperationalError, close_old_connections
from hypothesis import HealthCheck, Phase, given, settings

from memories.api import authentication
from tests import factories
from tests.api.calls import CALLS
from tests.api.client import operations, schema

pytestmark = pytest.mark.django_db

# Of each operation, valid and not: generating calls takes most of the time. `--examples N` makes N of each.
EXAMPLES = 3
LONGEST = 3
VALID, INVALID = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """As Django's own test client does: the end of a request must not close the test's connection."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@cache
def contract() -> Any:
    """The live document, in which no list of a request is long: to make a hundred conversations takes seconds."""
    from memoryhub.wsgi import application

    document = json.loads(json.dumps(schema()))
    for name, component in document["components"]["schemas"].items():
        if name.endswith("Request"):
            for member in component.get("properties", {}).values():
                if "array" in str(member.get("type")):
                    member["maxItems"] = min(LONGEST, member.get("maxItems", LONGEST))
    loaded = schemathesis.openapi.from_dict(document)
    loaded.app = application
    return loaded


def call_examples(operation: str, *modes: Any, examples: int) -> set[int]:
    """The statuses that generated calls of the operation came to, each answer held against the document."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    method, path = operations()[operation]
    _, plaintext = factories.api_key(factories.tenant())
    checks = [not_a_server_error, response_schema_conformance, status_code_conformance]
    found: set[int] = set()
    for mode in modes:
        cases = contract()[path][method].as_strategy(generation_mode=mode)

        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases)
        def run(case: Any) -> None:
            response = case.call(headers={"Authorization": f"Bearer {plaintext}"})
            case.validate_response(response, checks=checks)
            found.add(response.status_code)

        run()
    return found


@pytest.mark.parametrize("operation", CALLS)
def test_each_operation(operation: str, pytestconfig: pytest.Config) -> None:
    examples = pytestconfig.getoption("--examples") or EXAMPLES
    found = call_examples(operation, VALID, INVALID, examples=examples)
    # 401 is the answer to a broken Authorization header, which is among the broken calls.
    assert found - {401}
    assert 403 not in found


def test_a_server_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(authentication, "authenticate_key", away)
    with pytest.raises(BaseException, match=r"(?i)failure|server error"):
        call_examples("listUsers", VALID, examples=EXAMPLES)
