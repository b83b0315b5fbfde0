"""Idempotency keys: the first answer byte for byte, one operation under parallel doubles, nothing kept of a failure."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from typing import Any

import pytest
from django.db import connection, connections

from memories.api import idempotency
from memories.capture import ingest
from memories.curation import replays
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.replays import sweep_replays
from memories.exceptions import PersonRestricted
from memories.models import EndUser, Fact, IdempotencyRecord, Import, SessionQueue, Turn
from memories.privacy import registry
from tests import factories
from tests.api.calls import CALLS, SECRET, populated
from tests.api.client import BASE, HubClient, operations, schema
from tests.api.conftest import Hub, hub_of
from tests.database import PATIENCE, at_once, blocked, held, statements, undone

DAY = timedelta(hours=24)
SECOND = timedelta(seconds=1)


def turns(text: str = "我对花生过敏", **over: Any) -> dict[str, Any]:
    return {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": text}], **over}


def send(client: HubClient, body: Any = None, *, key: str = "k1", path: str = "/turns", **query: str) -> Any:
    headers = {idempotency.HEADER: key}
    return client.call("POST", path, turns() if body is None else body, headers=headers, query=query)


def is_replay(answer: Any) -> bool:
    return bool(answer.headers.get(idempotency.REPLAYED) == "true")


def aged(age: timedelta) -> None:
    for record in IdempotencyRecord.objects.all():
        IdempotencyRecord.objects.filter(pk=record.pk).update(created_at=record.created_at - age)


def with_key() -> list[str]:
    """Operations that take one."""
    found = []
    for name, (method, path) in operations().items():
        given = schema()["paths"][path][method.lower()].get("parameters", ())
        found += [name for parameter in given if (parameter["in"], parameter["name"]) == ("header", idempotency.HEADER)]
    return found


# Nothing changes.
READING = {
    *("getContext", "search", "downloadFiles", "globFiles", "grepFiles", "searchStoreItems", "listStoreNamespaces"),
}
# What takes none although it is a POST that does something, with the reason.
KEYLESS = {
    "answerQuestion": "its answer is what a model made of memories that may be gone later; nothing of it is stored",
    "batchStore": "it writes what it says, however often",
    "createImport": "a file is read as it comes and not held to compare it; sent again it stores nothing twice",
    "personLink": "its answer is a key to the page, which is stored nowhere",
    "previewExtraction": "its answer is what a model made of somebody's words, of which nothing is stored",
}
# Their answers tell of no person; that of addGroup: tests/curation/test_groups.py.
OF_NOBODY = {
    "addGroup",
    *("pauseImport", "resumeImport", "undoImport"),
    *("restoreContentPolicy", "startPolicyDryRun", "deletePolicyDryRunFindings"),
}


def lock_timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return str(cursor.fetchone()[0])


def test_state_changing_posts_take_a_key_and_no_other_operation() -> None:
    posts = {name for name, (method, _) in operations().items() if method == "POST"}
    assert READING.isdisjoint(KEYLESS)
    assert set(with_key()) == posts - READING - KEYLESS.keys()


def test_the_same_request_gets_the_same_bytes_and_is_not_done_again(client: HubClient) -> None:
    first, second = send(client), send(client)
    assert (first.status_code, second.status_code, second.content) == (202, 202, first.content)
    assert (is_replay(first), is_replay(second)) == (False, True)
    assert second.headers["Content-Type"] == first.headers["Content-Type"] == "application/json"
    assert Turn.objects.count() == 1


def test_without_a_key_it_is_done_again(client: HubClient) -> None:
    assert [client.post("/turns", turns()).status_code for _ in range(2)] == [202, 202]
    assert (Turn.objects.count(), IdempotencyRecord.objects.count()) == (2, 0)


def test_the_answer_stays_the_first_when_things_have_gone_on(client: HubClient) -> None:
    first = send(client)
    assert send(client, turns("Something else"), key="k2").json()["session"]["turn_count"] == 2
    assert send(client).content == first.content


@pytest.mark.parametrize("body", [turns("Else"), turns(flush=False)], ids=["other", "same meaning"])
def test_another_body_is_refused(client: HubClient, body: dict[str, Any]) -> None:
    send(client)
    answer = send(client, body)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert Turn.objects.count() == 1
    assert is_replay(send(client))


def test_another_object_in_the_path_is_another_request(hub: Hub) -> None:
    person = factories.end_user(hub.tenant)
    one, two = (factories.run(factories.session(person), status="parked") for _ in range(2))
    SessionQueue.objects.update(parked_at=factories.NOW, due_at=None, failure="model_timeout")
    assert send(hub.client, b"", path=f"/extractions/{one.pk}/retry").status_code == 202
    assert send(hub.client, b"", path=f"/extractions/{two.pk}/retry").status_code == 422
    assert is_replay(send(hub.client, b"", path=f"/extractions/{one.pk}/retry"))


def test_each_key_and_each_endpoint_has_its_own(hub: Hub, other: Hub) -> None:
    colleague = hub_of(hub.tenant)
    answers = [send(one.client) for one in (hub, colleague, other)] + [send(hub.client, key="k2")]
    assert [is_replay(answer) for answer in answers] == [False] * 4
    assert [answer.json()["session"]["turn_count"] for answer in answers] == [1, 2, 1, 3]
    answer = send(hub.client, {"conversations": [turns()]}, path="/turns/bulk")
    assert (answer.status_code, is_replay(answer)) == (202, False)


def test_a_key_has_visible_characters(client: HubClient) -> None:
    for key in ("", "x" * 256, "two words", "klé", "a\tb", "键".encode().decode("latin-1")):
        answer = send(client, key=key)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Idempotency-Key"), key
    assert not EndUser.objects.exists()
    for key in ("x" * 255, "!", '"8e03978e-40d5-43dd-bc93-6894a57f9324"'):
        assert [is_replay(send(client, key=key)) for _ in range(2)] == [False, True], key


def test_neither_key_nor_person_stands_in_the_record(client: HubClient) -> None:
    send(client, key="somebody@example.org")
    record = IdempotencyRecord.objects.get()
    assert b"somebody" not in bytes(record.key_digest) + bytes(record.request_digest) + bytes(record.body)
    assert "somebody" not in str(record)
    # Nor can it be guessed.
    assert bytes(record.key_digest) != sha256(b"somebody@example.org").digest()


UNREADABLE: list[tuple[bytes, dict[str, Any], int]] = [
    (b" " * (10 * 1024 * 1024 + 1), {}, 413),
    (b"user_id=u1", {"content_type": "application/x-www-form-urlencoded"}, 415),
    (b"--x\r\n", {"content_type": "multipart/form-data; boundary=x"}, 415),
    (b'{"user_id": "u1"', {}, 400),
    (b'{"user_id": "\xff"}', {}, 400),
    # It breaks off.
    (b"{", {"wsgi.input": BytesIO(b'{"user_id"'), "CONTENT_LENGTH": "99"}, 400),
]


def test_what_cannot_be_read_is_refused_as_without_a_key(client: HubClient) -> None:
    for headers in ({}, {idempotency.HEADER: "k1"}):
        for body, over, status in UNREADABLE:
            assert client.call("POST", "/turns", body, headers=headers, **over).status_code == status, body[:9]
    assert not IdempotencyRecord.objects.exists()


def test_a_chunked_body_is_read_as_a_whole(client: HubClient) -> None:
    body = json.dumps(turns()).encode()
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    for replayed in (False, True):
        headers = {idempotency.HEADER: "k1"}
        given: dict[str, Any] = {**chunked, "wsgi.input": BytesIO(body)}
        answer = client.call("POST", "/turns", body, headers=headers, **given)
        assert (answer.status_code, is_replay(answer)) == (202, replayed)


class TestFailures:
    def test_a_refusal_is_not_kept(self, hub: Hub) -> None:
        person = factories.end_user(hub.tenant, external_id="u1", restricted_at=factories.NOW)
        assert send(hub.client).status_code == 423
        assert not IdempotencyRecord.objects.exists()
        EndUser.objects.filter(pk=person.pk).update(restricted_at=None)
        answer = send(hub.client)
        assert (answer.status_code, is_replay(answer)) == (202, False)

    def test_a_bad_body_is_not_kept(self, client: HubClient) -> None:
        assert send(client, turns(role="user")).status_code == 400
        assert send(client).status_code == 202

    def test_dying_after_the_operation_undoes_it(self, client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
        store = ingest.store_turns

        def die(**given: Any) -> None:
            store(**given)
            assert Turn.objects.count() == 1
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(ingest, "store_turns", die)
            with pytest.raises(ZeroDivisionError):
                send(client)
        assert (Turn.objects.count(), IdempotencyRecord.objects.count()) == (0, 0)
        answer = send(client)
        assert (answer.status_code, is_replay(answer), Turn.objects.count()) == (202, False, 1)

    def test_the_operation_waits_for_its_own_locks_as_ever(
        self, client: HubClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[str] = []
        store = ingest.store_turns

        def look(**given: Any) -> ingest.Receipt:
            seen.append(lock_timeout())
            return store(**given)

        monkeypatch.setattr(ingest, "store_turns", look)
        send(client)
        client.post("/turns", turns())
        assert seen == ["0", "0"]


class TestADay:
    def test_after_it_the_record_counts_as_absent(self, client: HubClient) -> None:
        send(client)
        aged(DAY - SECOND * 60)
        assert is_replay(send(client))
        aged(SECOND * 60)
        answer = send(client, turns("Another body"))
        assert (answer.status_code, is_replay(answer)) == (202, False)
        assert (Turn.objects.count(), IdempotencyRecord.objects.count()) == (2, 1)
        assert is_replay(send(client, turns("Another body")))

    def test_old_records_are_taken_away_a_few_at_a_time(
        self, client: HubClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(replays, "SWEPT_AT_ONCE", 2)
        for name in ("a", "b", "c"):
            send(client, key=name)
        young = IdempotencyRecord.objects.get(pk=IdempotencyRecord.objects.latest("pk").pk)
        assert sweep_replays(now=young.created_at + DAY - SECOND * 60) == 0
        assert IdempotencyRecord.objects.count() == 3
        assert sweep_replays(now=young.created_at + DAY) == 2
        assert IdempotencyRecord.objects.get() == young
        assert sweep_replays(now=young.created_at + DAY) == 1
        assert not IdempotencyRecord.objects.exists()

    def test_a_first_request_costs_six_statements(self, client: HubClient) -> None:
        send(client)
        taken = statements(lambda: send(client, key="k2"))
        # Key of the API; lock and look-up; the session's rows, the same again with the turn; the record.
        assert [sql.split()[0] for sql in taken] == ["SELECT", "WITH", "SELECT", "SELECT", "WITH", "WITH"]


class TestEveryOperation:
    @pytest.mark.usefixtures("with_model")
    def test_is_replayed_and_its_record_is_found_by_its_person(self, hub: Hub) -> None:
        ids = populated(hub.tenant)
        person, nobody = EndUser.objects.get(external_id=ids.user_id), factories.end_user(hub.tenant)
        [store] = [store for store in registry.STORES if store.model == "memories.IdempotencyRecord"]
        for operation in with_key():
            call = CALLS[operation](ids)
            body = call.body if operation != "addFact" else {**(call.body or {}), "content": "Drinks tea"}
            template = operations()[operation][1]
            path = template.removeprefix(BASE).format(**call.path)
            with undone():
                if operation == "resumeImport":
                    # One that rests, after a dry run that showed people and their words.
                    Import.objects.update(state="paused", preview={"samples": [{"text": SECRET}]})
                first, second = (send(hub.client, body or b"", path=path) for _ in range(2))
                assert 200 <= first.status_code < 300, operation
                assert (second.status_code, second.content) == (first.status_code, first.content), operation
                assert is_replay(second), operation
                assert second.headers.get("ETag") == first.headers.get("ETag"), operation
                documented = schema()["paths"][template]["post"]["responses"][str(first.status_code)]["headers"]
                assert "ETag" in first.headers or "ETag" not in documented, operation
                told = operation not in OF_NOBODY
                assert told or SECRET not in first.content.decode(), operation
                assert store.rows_of(person).count() == told, operation
                assert store.rows_of(nobody).count() == 0, operation

    def test_a_bulk_tells_of_all_its_people(self, client: HubClient) -> None:
        send(client, {"conversations": [turns(user_id=name) for name in ("小明", "u2")]}, path="/turns/bulk")
        people = IdempotencyRecord.objects.get().end_users.values_list("external_id", flat=True)
        assert sorted(people) == ["u2", "小明"]

    def test_a_hard_delete_takes_the_text_out_of_the_records_too(self, hub: Hub) -> None:
        def add(text: str, key: str) -> Any:
            return send(hub.client, {"user_id": "u1", "content": text, "category": "other"}, path="/facts", key=key)

        kept, gone = add("Drinks tea", "a"), add("对花生过敏", "b")
        assert hub.client.call("DELETE", f"/facts/{gone.json()['id']}", query={"hard": "true"}).status_code == 204
        assert bytes(IdempotencyRecord.objects.get().body) == kept.content
        assert Fact.objects.count() == 1


class TestErasedPeople:
    def erased(self, user_id: str = "u1") -> None:
        person = EndUser.objects.get(external_id=user_id)
        [store] = [store for store in registry.STORES if store.model == "memories.IdempotencyRecord"]
        assert store.erase(person) == 1
        assert store.verify(person) == 0

    def test_a_late_double_is_refused_and_stores_nothing(self, client: HubClient) -> None:
        send(client)
        self.erased()
        Turn.objects.all().delete()
        for _ in range(2):
            answer = send(client)
            assert (answer.status_code, answer.json()["code"], is_replay(answer)) == (410, "erased", False)
        assert not Turn.objects.exists()
        # Positive control: under another key it is another request.
        assert send(client, key="k2").status_code == 202

    def test_with_another_body_the_key_is_taken_as_ever(self, client: HubClient) -> None:
        send(client)
        self.erased()
        assert send(client, turns("Something else")).status_code == 422

    def test_a_bulk_that_told_of_others_too_is_refused_as_a_whole(self, client: HubClient) -> None:
        body = {"conversations": [turns(user_id=name) for name in ("u1", "u2")]}
        send(client, body, path="/turns/bulk")
        self.erased()
        assert send(client, body, path="/turns/bulk").status_code == 410
        record = IdempotencyRecord.objects.get()
        assert (bytes(record.body), record.end_users.count()) == (b"", 0)

    def test_after_a_day_the_key_is_free(self, client: HubClient) -> None:
        send(client)
        self.erased()
        aged(DAY)
        assert send(client).status_code == 202


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.fixture
    def plaintext(self, transactional_db: None) -> str:
        assert schema()
        plaintext = factories.api_key(factories.tenant())[1]
        # The key's first use is noted on its row: nobody is to wait for that.
        assert HubClient(plaintext).get("/users").status_code == 200
        return plaintext

    def test_32_parallel_doubles_are_one(self, plaintext: str) -> None:
        answers: list[Any] = at_once(32, lambda _: send(HubClient(plaintext)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 1
        assert sum(is_replay(answer) for answer in answers) == 31
        assert (Turn.objects.count(), IdempotencyRecord.objects.count()) == (1, 1)

    def test_parallel_doubles_of_an_old_record_are_one(self, plaintext: str) -> None:
        send(HubClient(plaintext))
        aged(DAY)
        answers: list[Any] = at_once(8, lambda _: send(HubClient(plaintext)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 1
        assert (Turn.objects.count(), IdempotencyRecord.objects.count()) == (2, 1)

    def test_a_parallel_second_waits_for_the_first(self, plaintext: str) -> None:
        with held(lambda: send(HubClient(plaintext))) as first:
            second = blocked(lambda: send(HubClient(plaintext)))
        answer = second.result(PATIENCE)
        assert (answer.content, is_replay(answer)) == (first.content, True)
        assert Turn.objects.count() == 1

    def test_a_parallel_second_takes_over_when_the_first_fails(
        self, plaintext: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = ingest.store_turns
        reached, opened, failures = threading.Event(), threading.Event(), [PersonRestricted()]

        def fail_once(**given: Any) -> ingest.Receipt:
            receipt = store(**given)
            if failures:
                reached.set()
                assert opened.wait(PATIENCE)
                raise failures.pop()
            return receipt

        def request() -> Any:
            try:
                return send(HubClient(plaintext))
            finally:
                connections.close_all()

        monkeypatch.setattr(ingest, "store_turns", fail_once)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(request)
            assert reached.wait(PATIENCE)
            second = blocked(lambda: send(HubClient(plaintext)))
            opened.set()
            assert first.result(PATIENCE).status_code == 423
        answer = second.result(PATIENCE)
        assert (answer.status_code, is_replay(answer), Turn.objects.count()) == (202, False, 1)

    def test_a_second_does_not_wait_for_ever(self, plaintext: str, monkeypatch: pytest.MonkeyPatch) -> None:
        assert idempotency.LOCK_TIMEOUT_SECONDS == 10
        monkeypatch.setattr(idempotency, "LOCK_TIMEOUT_SECONDS", 1)
        client = HubClient(plaintext)
        with held(lambda: send(HubClient(plaintext))) as first:
            answer = send(client)
            assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_busy")
            assert int(answer.headers["Retry-After"]) > 0
            # The positive control: it was the key, and nothing else, that stood in the way.
            assert send(client, turns(user_id="u2"), key="k2").status_code == 202
        assert send(client).content == first.content


def test_an_operation_of_curation_keeps_its_own_conflicts(hub: Hub) -> None:
    """A failed insert inside the operation costs neither its transaction nor the key."""
    person = factories.end_user(hub.tenant, external_id="u1")
    draft = FactDraft(content="Drinks tea", category="other")
    known = add_fact(end_user=person, draft=draft, actor=factories.COMMAND, now=factories.NOW).row
    body = {"user_id": "u1", "content": "drinks TEA", "category": "other"}
    answers = [send(hub.client, body, path="/facts") for _ in range(2)]
    assert [answer.json()["existing_id"] for answer in answers] == [str(known.pk)] * 2
    assert not IdempotencyRecord.objects.exists()
