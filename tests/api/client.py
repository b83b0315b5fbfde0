"""A client that holds every answer against the contract: the live schema, problem documents, ids, no cookies."""

import json
import re
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from memories.api.schema import DocumentOnce

BASE = "/api/v1"
MANAGEMENT = f"{BASE}/management"
PROBLEM = "application/problem+json"
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "instance", "code", "request_id", "errors"}
PROBLEM_EXTRAS = {
    "existing_id", "occurrences", "newline_only", "occurrences_without_newline", "total_lines", "category",
    "policy_version",
}  # fmt: skip
METHODS = ("get", "put", "post", "patch", "delete")


@cache
def schema() -> dict[str, Any]:
    """The live OpenAPI document."""
    return DocumentOnce().get_schema()  # type: ignore[no-untyped-call]


def operations() -> dict[str, tuple[str, str]]:
    """operationId → (METHOD, path template), of those for keys of tenants."""
    return {name: found for name, found in all_operations().items() if not found[1].startswith(MANAGEMENT)}


def management_operations() -> dict[str, tuple[str, str]]:
    """Those for management keys."""
    return {name: found for name, found in all_operations().items() if found[1].startswith(MANAGEMENT)}


@cache
def all_operations() -> dict[str, tuple[str, str]]:
    return {
        found["operationId"]: (method.upper(), path)
        for path, item in schema()["paths"].items()
        for method, found in item.items()
        if method in METHODS
    }


class HubClient:
    """Speaks for one key."""

    def __init__(self, plaintext: str) -> None:
        self.plaintext = plaintext
        self.http = Client()

    def get(self, path: str, **query: Any) -> Any:
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, headers=headers)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: dict[str, Any] | str = "",
        headers: dict[str, str] | None = None,
        content_type: str = "application/json",
        **environ: Any,
    ) -> Any:
        """One request below /api/v1; `body` bytes go as they are, anything else as JSON."""
        text = query if isinstance(query, str) else urlencode(query)
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.plaintext}", **(headers or {})}
        response = self.http.generic(
            method,
            BASE + path,
            data,
            content_type=content_type,
            headers=sent,
            query_params=None,
            QUERY_STRING=text,
            **environ,
        )
        hold_against_contract(method, BASE + path, response)
        return response


def hold_against_contract(method: str, path: str, response: Any) -> None:
    """What is true of every answer."""
    assert response.headers["X-Request-ID"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert not response.cookies
    documented = _documented(method, path)
    if response.status_code >= 400:
        problem = response.json()
        assert response.headers["Content-Type"] == PROBLEM
        assert set(problem) - PROBLEM_EXTRAS == PROBLEM_MEMBERS
        assert problem["status"] == response.status_code
        assert problem["request_id"] == response.headers["X-Request-ID"]
        assert problem["detail"]
        assert "?" not in problem["instance"]
        assert documented is None or response.status_code == 405 or str(response.status_code) in documented
    elif documented is not None:
        content = documented[str(response.status_code)].get("content")
        assert bool(content) == bool(response.streaming or response.content)
        kind = response.headers["Content-Type"] if content else ""
        assert not content or kind in content
        if kind == "application/json":
            _validator(json.dumps(content["application/json"]["schema"])).validate(response.json())


def _documented(method: str, path: str) -> dict[str, Any] | None:
    """The documented answers of the operation at this address."""
    return next((answers for verb, address, answers in _answers() if verb == method and address.fullmatch(path)), None)


@cache
def _answers() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    """Method, addresses and documented answers of each operation."""
    return [
        (verb, re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), schema()["paths"][path][verb.lower()]["responses"])
        for verb, path in all_operations().values()
    ]


@cache
def _validator(wanted: str) -> Draft202012Validator:
    return Draft202012Validator({**json.loads(wanted), "components": _strict()})


@cache
def _strict() -> dict[str, Any]:
    components: dict[str, Any] = json.loads(json.dumps(schema()["components"]))
    for component in components["schemas"].values():
        if "properties" in component:
            # Nothing is answered that is not documented, unless the document says so.
            component.setdefault("additionalProperties", False)
    return components


def follow(client: HubClient, address: str) -> Any:
    """The page at an address that a list gave."""
    parts = urlsplit(address)
    assert parts.netloc == "testserver"
    return client.get(parts.path.removeprefix("/api/v1"), **dict(parse_qsl(parts.query))).json()
