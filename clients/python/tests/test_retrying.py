"""When a request is sent again, and when it is not; the same for both clients."""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from memoryhub_client import (
    AsyncMemoryHub,
    ConflictError,
    ConnectionFailedError,
    MemoryHub,
    MemoryHubError,
    NoAnswerInTimeError,
    NotFoundError,
    Retries,
    ServerError,
    ThrottledError,
    UnavailableError,
    UnexpectedAnswerError,
    VersionMismatchError,
)
from memoryhub_client._retrying import httpx
from memoryhub_client.client import _request

DEFAULT = Retries()
Answer = httpx.Response | Exception
SESSION = {"id": "1", "session_id": "s", "user_id": "u", "agent_id": None, "turn_count": 1, "token_count": 1}
STANDING = {"session": SESSION, "extraction": {"status": "idle", "due_at": None, "max_due_at": None}}


def ok(body: Any = STANDING, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


def problem(status: int, code: str = "x", **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"status": status, "code": code, "detail": "…"}, headers=headers)


class Script:
    """A hub that gives these answers, one after the other, through the sync or the async client."""

    def __init__(self, waits: list[float], asynchronous: bool) -> None:
        self.waits, self.asynchronous = waits, asynchronous
        self.sent: list[httpx.Request] = []
        self.answers: list[Answer] = []

    def ask(self, call: Callable[[Any], Any], *answers: Answer, retries: Retries = DEFAULT) -> Any:
        self.answers = list(answers)
        transport = httpx.MockTransport(self._answer)
        if not self.asynchronous:
            return call(MemoryHub("k", transport=transport, retries=retries))
        return asyncio.run(call(AsyncMemoryHub("k", transport=transport, retries=retries)))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(params=["sync", "async"])
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Script:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("memoryhub_client.client.time.sleep", waits.append)
    monkeypatch.setattr("memoryhub_client.client.asyncio.sleep", sleep)
    return Script(waits, request.param == "async")


def flush(hub: Any) -> Any:
    return hub.flush_session(user_id="u", session_id="s")


def test_a_refusal_that_passes_is_tried_again_with_the_same_bytes_and_key(script: Script) -> None:
    answer = script.ask(flush, problem(503, "unavailable"), problem(429, "throttled"), ok(status=202))
    assert answer.session.session_id == "s"
    assert len(script.sent) == 3
    assert len({one.headers["Idempotency-Key"] for one in script.sent}) == 1
    assert len({one.content for one in script.sent}) == 1


def test_each_call_has_a_key_of_its_own_and_the_callers_is_taken(script: Script) -> None:
    script.ask(flush, ok())
    script.ask(flush, ok())
    script.ask(lambda hub: hub.flush_session(user_id="u", session_id="s", idempotency_key="mine"), ok())
    keys = [one.headers["Idempotency-Key"] for one in script.sent]
    assert keys[2] == "mine"
    assert len(set(keys)) == 3


def test_it_waits_as_long_as_the_hub_says_and_longer_each_time_when_it_does_not(script: Script) -> None:
    script.ask(flush, problem(503, **{"Retry-After": "7"}), ok())
    assert 7 <= script.waits.pop() <= 7.5
    at = datetime.now(timezone.utc) + timedelta(seconds=20)
    script.ask(flush, problem(429, **{"Retry-After": format_datetime(at, usegmt=True)}), ok())
    assert 15 <= script.waits.pop() <= 20.5
    script.ask(flush, problem(503), problem(503), problem(503), ok())
    assert [0.25 <= script.waits[0] <= 0.5, 0.5 <= script.waits[1] <= 1, 1 <= script.waits[2] <= 2] == [True] * 3


def test_it_gives_up_after_so_many_times_and_does_not_wait_for_long(script: Script) -> None:
    with pytest.raises(UnavailableError):
        script.ask(flush, *[problem(503)] * 3, retries=Retries(times=2))
    assert len(script.sent) == 3
    with pytest.raises(ThrottledError) as found:
        script.ask(flush, problem(429, "throttled", **{"Retry-After": "31"}))
    assert found.value.retry_after == 31
    assert len(script.sent) == 4


@pytest.mark.parametrize("lost", [httpx.ReadError("broke"), httpx.ReadTimeout("late"), httpx.ConnectError("no hub")])
def test_a_lost_answer_is_asked_for_again(script: Script, lost: Exception) -> None:
    assert script.ask(flush, lost, ok()).session.user_id == "u"
    error = NoAnswerInTimeError if isinstance(lost, httpx.TimeoutException) else ConnectionFailedError
    with pytest.raises(error):
        script.ask(flush, *[lost] * 4)


def test_what_could_be_done_twice_is_sent_again_only_if_it_never_arrived(script: Script) -> None:
    def change(hub: Any) -> Any:
        return hub.change_fact("f", pinned=True, if_match=1)

    with pytest.raises(ConnectionFailedError):
        script.ask(change, httpx.ReadError("broke"))
    with pytest.raises(VersionMismatchError):
        script.ask(change, httpx.ConnectError("no hub"), problem(412, "version_mismatch"))
    with pytest.raises(ConnectionFailedError):
        script.ask(lambda hub: hub.take_privacy_export("c"), httpx.ReadError("broke"))
    # A page of a proxy does not say whether the hub was asked; the hub's own word does.
    with pytest.raises(UnavailableError):
        script.ask(lambda hub: hub.take_privacy_export("c"), httpx.Response(503, text="<html>"))
    assert (
        script.ask(lambda hub: hub.take_privacy_export("c"), problem(503), httpx.Response(200, content=b"PK")) == b"PK"
    )


@pytest.mark.parametrize(("answers", "may_be"), [
    (lambda: [httpx.ConnectError("no hub")] * 4, False),
    (lambda: [httpx.ReadError("broke"), *[httpx.ConnectError("no hub")] * 3], True),
    (lambda: [httpx.ReadTimeout("late")] * 4, True),
    (lambda: [httpx.Response(502, text="<html>")] * 4, True),
    (lambda: [problem(503)] * 4, False),
    (lambda: [httpx.ReadError("broke"), problem(409, "review_needed")], False),
    (lambda: [problem(401, "unauthorized")], False),
])  # fmt: skip
def test_an_error_says_whether_it_may_be_done_all_the_same(script: Script, answers: Any, may_be: bool) -> None:
    with pytest.raises(MemoryHubError) as caught:
        script.ask(flush, *answers())
    assert caught.value.may_be_done is may_be


def test_what_the_lost_attempt_deleted_is_gone(script: Script) -> None:
    script.ask(lambda hub: hub.delete_fact("f"), httpx.ReadError("broke"), problem(404, "not_found"))
    with pytest.raises(NotFoundError):
        script.ask(lambda hub: hub.delete_fact("f"), problem(404, "not_found"))
    with pytest.raises(NotFoundError):
        script.ask(lambda hub: hub.delete_fact("f"), httpx.ConnectError("no hub"), problem(404, "not_found"))


def test_a_conflict_that_passes_is_tried_again_and_another_is_not(script: Script) -> None:
    script.ask(flush, problem(409, "idempotency_key_busy", **{"Retry-After": "1"}), problem(409, "merged"), ok())
    assert len(script.sent) == 3
    with pytest.raises(ConflictError):
        script.ask(flush, problem(409, "not_ready", **{"Retry-After": "1"}))
    with pytest.raises(ServerError):
        script.ask(flush, problem(500, "internal_error"))


def test_an_answer_that_is_no_hubs_is_an_error_of_its_own(script: Script) -> None:
    for answer in (httpx.Response(200, text="<html>"), ok([]), ok({"session": "no object"}), ok({})):
        with pytest.raises(UnexpectedAnswerError):
            script.ask(flush, answer)
    with pytest.raises(Exception, match="302"):
        script.ask(flush, httpx.Response(302, headers={"Location": "https://elsewhere.example/"}))


def test_a_page_is_followed_by_its_cursor_alone(script: Script) -> None:
    first = {"next": "https://public.example/api/v1/users?cursor=c2&q=a", "previous": None, "results": [PERSON]}
    last = {"next": None, "previous": None, "results": [{**PERSON, "user_id": "u2", "new_member": 1}]}

    def every(hub: Any) -> Any:
        return list(hub.list_users(q="a", page_size=1))

    async def every_async(hub: Any) -> Any:
        return [one async for one in hub.list_users(q="a", page_size=1)]

    found = script.ask(every_async if script.asynchronous else every, ok(first), ok(last))
    assert [one.user_id for one in found] == ["u1", "u2"]
    assert found[0].created_at == datetime(2026, 11, 3, 9, 12, tzinfo=timezone.utc)
    assert [str(one.url) for one in script.sent] == [
        "http://127.0.0.1:8000/api/v1/users?q=a&page_size=1",
        "http://127.0.0.1:8000/api/v1/users?q=a&page_size=1&cursor=c2",
    ]


PERSON: dict[str, Any] = {
    "id": "01a2171e-6d2e-7b3f-9c1d-5e6f7a8b9c0d", "user_id": "u1", "display_name": None, "time_zone": None,
    "language": None, "metadata": {}, "capture": True, "serve": True, "restricted": False,
    "created_at": "2026-11-03T09:12:00Z", "last_seen_at": "2026-11-03T09:12:00.5Z",
}  # fmt: skip


def test_what_is_sent(script: Script) -> None:
    at = datetime(2026, 11, 3, tzinfo=timezone.utc)
    script.ask(
        lambda hub: hub.change_fact("a/b", key=None, expires_at=at, to_agent="b", agent_id="a", roles=["r,1", "r2"]),
        ok(FACT),
    )
    [sent] = script.sent
    assert sent.url.raw_path == b"/api/v1/facts/a%2Fb?agent_id=a&roles=r%2C1&roles=r2"
    assert json.loads(sent.content) == {"key": None, "expires_at": "2026-11-03T00:00:00+00:00", "agent_id": "b"}
    assert sent.headers["Authorization"] == "Bearer k"


FACT: dict[str, Any] = {
    **dict.fromkeys((
        "agent_id", "raw", "structured", "external_id", "key", "value", "source_error", "extraction_id",
        "last_recalled_at", "valid_to", "superseded_by", "expires_at", "forget_at", "embedding_model", "still_said_by",
    )),
    "id": "f", "user_id": "u", "type": "semantic", "category": "other", "content": "…", "confidence": 1,
    "importance": 0.5, "tags": [], "source": "external_data", "trust": "user", "extractor": "api", "status": "active",
    "pinned": False, "locked": False, "mentions": 1, "version": 1, "scope": "private", "allowed_users": [],
    "allowed_roles": [], "relations": [], "evidence": [], "decay_score": 0.5,
    **dict.fromkeys(("created_at", "updated_at", "first_observed_at", "last_confirmed_at", "valid_from"),
                    "2026-11-03T09:12:00Z"),
}  # fmt: skip


@pytest.mark.parametrize("base", ["http://hub:8000", "https://example.org/deep/er/"])
def test_a_request_is_the_one_that_the_library_would_make(base: str) -> None:
    hub = MemoryHub("mh_x", base_url=base)
    for call in (
        MemoryHub.get_session.call(("a/b é",), {}),
        MemoryHub.list_facts.call((), {"user_id": "u1"}),
        MemoryHub.batch_store.call((), {"operations": [{"op": "get", "namespace": ["a"], "key": "k"}]}),
    ):
        made = _request(hub._http, call)
        expected = hub._http.build_request(
            call.method, call.path, params=tuple(call.query) or None, headers=call.headers, content=call.body
        )
        assert (made.method, made.url, made.content) == (expected.method, expected.url, expected.content)
        assert sorted(made.headers.raw) == sorted(expected.headers.raw)


def test_a_client_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORYHUB_KEY", raising=False)
    with pytest.raises(ValueError, match="MEMORYHUB_KEY"):
        MemoryHub()
    monkeypatch.setenv("MEMORYHUB_KEY", "mh_1")
    monkeypatch.setenv("MEMORYHUB_URL", "http://hub.example:81")
    assert str(MemoryHub()._http.base_url).rstrip("/") == "http://hub.example:81"
