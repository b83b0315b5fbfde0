"""Whatever a request looks like, it reaches no address of the endpoint but those that are declared, carries no key of
the hub there, and gets an answer that its library can read."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from memories.curation.access.keys import Binding
from memories.gateway import gateway
from memories.models import Tenant
from tests import factories
from tests.gateway.conftest import stored
from tests.gateway.wire import KEY, Noting, Wire, replied

# What may be reached with the least of keys: their targets are the positive control of all others.
READ = {
    "/v1/models": "/v1/models",
    "/v1/models/m": "/v1/models/m",
    "/v1/models/ft:gpt-4o:org::9sPQ": "/v1/models/ft:gpt-4o:org::9sPQ",
    "/v1/models/org/name-3.5": "/v1/models/org/name-3.5",
    "/v1/models/org%2Fname%3Afree": "/v1/models/org/name:free",
    "/v1/models/@cf/meta/llama-3": "/v1/models/@cf/meta/llama-3",
    "/v1/%6dodels/%6d": "/v1/models/m",
    "/v1/models?limit=3&after=m": "/v1/models?limit=3&after=m",
}
# The same step up or aside, as different servers read it.
STEPS = (
    "..", ".", "%2e%2e", "%2E%2e", ".%2e", "%2e", "%252e%252e", "%25252e%25252e", "..;", "..;a=b", "..%3b", "..%00",
    "..%5c", "..%09", "%c0%ae%c0%ae", "%e0%80%ae%e0%80%ae", "%uff0e%uff0e", "%ef%bc%8e%ef%bc%8e", "%e2%80%a4%e2%80%a4",
)  # fmt: skip
SLASHES = ("/", "%2f", "%2F", "%252f", "%25252F", "%5c", "\\", "%255c", "//", "/./", "%c0%af", "%ef%bc%8f", "%e2%88%95")
AIMS = ("files", "batches", "organization/usage", "fine_tuning/jobs", "chat/completions", "models/../files")
# Begin, end and middle of a parameter.
ODD = (
    "m%3fa=b", "m%3Fmethod=DELETE", "m%23a", "m%253fa", "m;a=b", "m%3ba", "m%20a", "m+%2f", "m%2f", "m/", "/m", "m//n",
    "m/./n", "m/../n", "m/.hidden", "m/...", "...", ".m", "-", "m%7c", "m*", "m%22", "m'", "m(", "m,n", "m&a", "m$",
    "%", "%zz", "%2", "m%", "m%25", "\xe9", "%c3%a9", "%e9", "%ff", "%ed%a0%80", "%e2%80%ae", "m%e2%80%8b", "a" * 600,
    "a/" * 9 + "a", "mh_0123456789_" + "a" * 43, "mhm_0123456789_" + "a" * 43,
)  # fmt: skip
ELSEWHERE = (
    "/v1", "/v1/", "/v1//models", "//v1/models", "/v1/./models", "/./v1/models", "/v1/models/", "/v1/models%2f",
    "/v1%2fmodels/",
    "/x/../v1/models", "/v1/../v1/models", "/api/../v1/files", "/v1\\models", "/v1;a/models",
    "/v1/models;a", "/v1/Models", "/v1/models.json", "/v1/files", "/v1/batches", "/v1/responses", "/v1/conversations",
    "/v1/chat/completions/c1", "/v1/organization/api_keys", "/v1/audio/speech", "/v1/images", "/v1/moderations",
    "/v1/messages/batches", "/v1/messages/batches/b1/results", "/v1/responses/resp_1/input_items/extra",
    "/v1/conversations/conv_1/items/i1/extra", "/v1/models/m%3Fa/../..", "/v1/admin", "/v1/internal/metrics",
)  # fmt: skip
# Bytes that end a text, a line or a word somewhere.
CONTROL = (
    "%00",
    "%01",
    "%08",
    "%09",
    "%0a",
    "%0d",
    "%0d%0aX-A:%20b",
    "%1b",
    "%1f",
    "%7f",
    "%c2%80",
    "%c2%9f",
    "%2500",
    "%250a",
)


@pytest.fixture
def least(tenant: Tenant) -> str:
    """A key that only reads, for one person."""
    return factories.api_key(tenant, scopes=["read"], binding=Binding(user_id="u1"))[1]


def away() -> list[str]:
    steps = [
        f"/v1/models{before}{step}{after}{AIMS[0]}" for step in STEPS for before in ("/", "%2f") for after in SLASHES
    ]
    aims = [f"/v1/models{slash}..{slash}{aim}" for slash in SLASHES for aim in AIMS]
    deep = ["/v1/models/m" + "/.." * depth + "/files" for depth in range(1, 5)]
    below = [
        f"/v1/{place}/..%2f..%2ffiles"
        for place in ("responses/resp_1", "conversations/conv_1", "conversations/c/items")
    ]
    odd = [f"/v1/{place}/{one}" for place in ("models", "responses", "conversations/c/items") for one in ODD]
    return [*steps, *aims, *deep, *below, *odd, *ELSEWHERE]


def test_what_may_be_read(sender: Wire, noted: Noting, least: str) -> None:
    for target, there in READ.items():
        assert sender.ask("GET", target, key=least).status == 200, target
        [asked] = noted.asked
        assert (asked.method, asked.target) == ("GET", there)
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        noted.asked.clear()


def test_no_other_address_is_reached(sender: Wire, noted: Noting, least: str) -> None:
    for key in (least, sender.key):
        answers = {target: sender.ask("GET", target, key=key) for target in away()}
        # Whatever was let through by itself is not below /v1/, for neither side.
        django = {target: one for target, one in answers.items() if one.body == b"<html>Django's</html>"}
        assert {one for one in django if one.startswith("/v1/")} == set()
        errors = {
            target: (one.status, one.error["is_anthropic"]) for target, one in answers.items() if target not in django
        }
        # 405: the address of something that is only sent to.
        assert {status for status, _ in errors.values()} <= {400, 404, 405}
        assert {status for target, (status, _) in errors.items() if target not in ELSEWHERE} <= {400, 404}
        assert {target for target, (_, is_anthropic) in errors.items() if is_anthropic} == {
            one for one in ELSEWHERE if one.startswith("/v1/messages")
        }
        assert noted.targets() == []


@pytest.mark.parametrize("place", ["models", "responses", "conversations", "messages"])
def test_a_control_character_in_a_path(sender: Wire, noted: Noting, place: str) -> None:
    for one in CONTROL:
        for target in (f"/v1/{place}/{one}", f"/v1/{place}/a{one}b", f"/v1/{place}{one}", f"/v1{one}/{place}"):
            answer = sender.ask("GET", target)
            if not target.startswith("/v1/"):
                continue
            assert (answer.status, answer.error["type"]) == (400, "invalid_request_error"), target
    assert noted.targets() == []


@pytest.mark.parametrize(
    "method", ["HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "DELETE", "POST", "GET"]
)
def test_another_method(sender: Wire, noted: Noting, method: str) -> None:
    targets = ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/models", "/v1/models/m"]
    reading = [one for one in targets if method == "GET" and "models" in one]
    sending = [one for one in targets if method == "POST" and "models" not in one]
    for target in targets:
        if target in reading or target in sending or method == "CONNECT":
            continue
        answer = sender.ask(method, target)
        assert (answer.status, answer.headers["content-type"]) == (405, "application/json"), target
        assert answer.headers["allow"] == ("GET" if "models" in target else "POST")
        if method == "HEAD":
            assert answer.body == b""
        else:
            assert answer.error["is_anthropic"] is ("messages" in target)
    assert noted.targets() == []


def test_what_a_query_holds(sender: Wire, noted: Noting) -> None:
    there = {
        "a=1&b=%E5%BC%A0&include[]=x&include[]=y": "a=1&b=%E5%BC%A0&include%5B%5D=x&include%5B%5D=y",
        "beta=true": "beta=true",
        "beta": "beta=",
        "a=/../files&b=%23c?d": "a=%2F..%2Ffiles&b=%23c%3Fd",
        "_method=DELETE&a=1": "a=1",
        "X-HTTP-Method-Override=DELETE&a=1": "a=1",
    }
    for query, sent in there.items():
        assert sender.ask("GET", f"/v1/models?{query}").status == 200, query
        assert noted.targets() == [("GET", f"/v1/models?{sent}")]
    many = "&".join(f"p{number}=1" for number in range(60))
    refused = [
        "a=%00",
        "a%0a=1",
        "a=%0d%0ab",
        "a=%ff",
        "a=%ed%a0%80",
        many,
        f"key={sender.key}",
        f"k={quote(sender.key, safe='')}",
    ]
    for query in refused:
        answer = sender.ask("GET", f"/v1/models?{query}")
        assert (answer.status, answer.error["type"]) == (400, "invalid_request_error"), query
    assert noted.targets() == []


def test_a_header_makes_no_other_request_of_it(sender: Wire, noted: Noting, least: str) -> None:
    own = (f"Authorization: Bearer {least}", "X-Title: mine")
    for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        sender.ask("GET", "/v1/models/m", b"", *own, f"{name}: DELETE")
    for name in ("X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Forwarded-Prefix", "X-Forwarded-Host"):
        sender.ask("GET", "/v1/models/m", b"", *own, f"{name}: /v1/files")
    assert len(noted.asked) == 8
    for asked in noted.asked:
        assert (asked.method, asked.target, asked.headers["x-title"]) == ("GET", "/v1/models/m", "mine")
        assert not [value for value in asked.headers.values() if value in ("DELETE", "/v1/files")]


# Where a key of the hub may stand beside the one in X-Memory-Key, in what form.
PLACES = (
    "Authorization: Bearer {}", "Authorization: {}", "Authorization: Basic {basic}", "Authorization: Bearer x{}y",
    "authorization: bearer\t{}", "X-Api-Key: {}", "X-API-KEY: Bearer {}", "Api-Key: {}", "X-Custom: {}",
    "X-Custom: token={};a", "X-Custom: {percent}", "X-Custom: {basic}", "X-Goog-Api-Key: {}",
    "Proxy-Authorization: Bearer {}",
    "Referer: http://hub/?key={}", "Cookie: key={}", "X_Memory_Key: {}", 'X-Json: {{"key": "{}"}}', "Traceparent: {}",
    "OpenAI-Organization: {}", "X-Memory-Other: {}",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_no_key_of_the_hub_reaches_the_endpoint(sender: Wire, noted: Noting, tenant: Tenant, place: str) -> None:
    other = factories.api_key(tenant, scopes=["read"])[1]
    keys = {"own": sender.key, "another": other, "management": factories.management_key()[1]}
    said = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
    for whose, key in keys.items():
        basic = base64.b64encode(f"user:{key}".encode()).decode()
        header = place.format(key, basic=basic, percent=quote(key).replace("_", "%5f"))
        for method, target, body in (("POST", "/v1/chat/completions", said), ("GET", "/v1/models", b"")):
            answer = sender.ask(method, target, body, f"X-Memory-Key: {sender.key}", header, "X-Title: mine")
            assert answer.status == 200, whose
            [asked] = noted.asked
            sent = str(asked.headers)
            assert not [one for one in keys.values() if one in sent or one.replace("_", "%5f") in sent], whose
            assert basic not in sent, whose
            # The endpoint's own stands where the client's was none, and the rest came through.
            assert (asked.headers["authorization"], asked.headers["x-title"]) == (f"Bearer {KEY}", "mine")
            noted.asked.clear()


def test_the_caller_s_own_key_goes_on_beside_the_hub_s(sender: Wire, noted: Noting) -> None:
    own = ("Authorization: Bearer sk-of-the-caller", "X-Custom: mh_ and mhm_ are prefixes")
    sender.ask("GET", "/v1/models", b"", f"X-Memory-Key: {sender.key}", *own)
    [asked] = noted.asked
    assert asked.headers["authorization"] == "Bearer sk-of-the-caller"
    assert asked.headers["x-custom"] == "mh_ and mhm_ are prefixes"
    # In letters that are none of Latin-1's, too.
    sender.ask("GET", "/v1/models", b"", f"X-Memory-Key: {sender.key}", "Authorization: Bearer 钥匙")
    assert (
        noted.asked[-1].headers["authorization"].encode("latin-1", "surrogateescape").decode("utf-8") == "Bearer 钥匙"
    )


def nested(levels: int, *, kind: str) -> bytes:
    if kind == "arrays":
        return b"[" * levels + b"]" * levels
    if kind == "objects":
        return b'{"a":' * levels + b"1" + b"}" * levels
    return b'[{"a":' * (levels // 2) + b"1" + b"}]" * (levels // 2)


# Where a document may be deep: in what is stored, and in what only goes on.
DEEP: dict[str, tuple[str, bytes]] = {
    "a picture": (
        "/v1/chat/completions",
        b'{"messages":[{"role":"user","content":[{"type":"image","a":%s}]}],"user":"u1"}',
    ),
    "a call": (
        "/v1/chat/completions",
        b'{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":[{"a":%s}]}],"user":"u1"}',
    ),
    "a tool": ("/v1/chat/completions", b'{"messages":[{"role":"user","content":"Hi"}],"tools":[%s],"user":"u1"}'),
    "an item": ("/v1/responses", b'{"input":[{"role":"user","content":[{"type":"x","a":%s}]}],"user":"u1"}'),
    "arguments": (
        "/v1/responses",
        b'{"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c","arguments":%s}],"user":"u1"}',
    ),
    "a block": (
        "/v1/messages",
        b'{"messages":[{"role":"user","content":[{"type":"tool_use","input":%s}]}],"metadata":{"user_id":"u1"}}',
    ),
    "unknown": ("/v1/messages", b'{"messages":[{"role":"user","content":"Hi"}],"x":%s,"metadata":{"user_id":"u1"}}'),
}


@pytest.mark.parametrize(
    ("where", "kind"), [*((where, "both") for where in DEEP), ("unknown", "arrays"), ("unknown", "objects")]
)
def test_a_deep_document(sender: Wire, noted: Noting, where: str, kind: str) -> None:
    target, document = DEEP[where]
    for levels in (66, 300, 450, 900, 960, 1_000, 20_000):
        answer = sender.ask("POST", target, document % nested(levels, kind=kind))
        assert (answer.status, answer.error["type"]) == (400, "invalid_request_error"), levels
        assert answer.error["is_anthropic"] is (target == "/v1/messages")
    assert (noted.targets(), stored()) == ([], [])
    assert sender.ask("POST", target, document % nested(56, kind=kind)).status == 200
    assert noted.targets() == [("POST", target)]
    assert stored() != []


def test_nobody_is_warned_when_claude_code_looks_for_its_api(sender: Wire, noted: Noting) -> None:
    for method in ("HEAD", "GET"):
        answer = sender.ask(method, "/api/hello", b"", "User-Agent: claude-cli")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert json.loads(answer.body) == {"message": "hello"}
    # Django did not see it, and warns of all that it does not know.
    assert (sender.server.asked, noted.asked) == ([], [])
    sender.ask("GET", "/api/hello/more")
    assert len(sender.server.asked) == 1


@pytest.mark.parametrize(("target", "is_anthropic"), [("/v1/chat/completions", False), ("/v1/messages", True)])
def test_the_server_s_own_errors(
    sender: Wire, monkeypatch: pytest.MonkeyPatch, target: str, is_anthropic: bool
) -> None:
    """Of a request that does not come to its end, and of one at which the hub fails."""
    head = f"POST {target} HTTP/1.1\r\nHost: hub\r\nContent-Length: 9\r\n\r\n".encode()
    unfinished = replied(sender.server.answer(head + b"{"))
    assert (unfinished.status, unfinished.error["is_anthropic"]) == (400, is_anthropic)

    async def fails(*_: object) -> None:
        raise RuntimeError("secret of somebody")

    monkeypatch.setattr(gateway.Gateway, "_answer", fails)
    failed = sender.ask("POST", target, b"{}")
    assert (failed.status, failed.error["is_anthropic"], b"secret" in failed.body) == (500, is_anthropic, False)
    # Others keep the form of the API.
    other = replied(sender.server.answer(head.replace(target.encode(), b"/api/v1/context") + b"{"))
    assert other.headers["content-type"] == "application/problem+json"


def test_a_refused_request_leaves_nothing(sender: Wire, noted: Noting, tenant: Tenant) -> None:
    """The key is not looked at before the address, and the address not told to whoever has none."""
    said: Any = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "user": "u1"}).encode()
    assert sender.ask("POST", "/v1/chat/completions/", said).status == 404
    assert sender.ask("POST", "/v1/chat/completions", said, key="mh_wrong").status == 401
    assert (noted.targets(), stored()) == ([], [])
