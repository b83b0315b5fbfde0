"""Generated calls of every operation, valid and not, with each scope: no server error, nothing undocumented."""

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
from memories.models import Scope
from tests import factories
from tests.api.calls import CALLS
from tests.api.client import operations, schema

pytestmark = pytest.mark.django_db

# With every scope at once most of the examples, valid and not. With each scope alone one valid call, which is enough to
# see that it is asked for: generating calls takes most of the time. `--examples N` makes N of each.
EXAMPLES = 8
EXAMPLES_OF_ONE_SCOPE = 1
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


def call_examples(operation: str, *modes: Any, scopes: list[str], examples: int) -> set[int]:
    """The statuses that generated calls of the operation came to, each answer held against the document."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

    method, path = operations()[operation]
    _, plaintext = factories.api_key(factories.tenant(), scopes=scopes)
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


def wanted(config: pytest.Config, default: int) -> int:
    """How many examples to make."""
    examples: int | None = config.getoption("--examples")
    return examples or default


@pytest.mark.parametrize("operation", CALLS)
def test_with_every_scope(operation: str, pytestconfig: pytest.Config) -> None:
    examples = wanted(pytestconfig, EXAMPLES)
    found = call_examples(operation, VALID, INVALID, scopes=list(Scope.values), examples=examples)
    # 401 is the answer to a broken Authorization header, which is among the broken calls.
    assert found - {401}
    assert 403 not in found


def test_a_server_error_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(authentication, "authenticate_key", away)
    with pytest.raises(BaseException, match=r"(?i)failure|server error"):
        call_examples("listUsers", VALID, scopes=list(Scope.values), examples=EXAMPLES)


@pytest.mark.parametrize("scope", Scope.values)
def test_with_one_scope(scope: str, pytestconfig: pytest.Config) -> None:
    examples = wanted(pytestconfig, EXAMPLES_OF_ONE_SCOPE)
    found: set[int] = set()
    for operation in CALLS:
        found |= call_examples(operation, VALID, scopes=[scope], examples=examples)
    assert 403 in found
