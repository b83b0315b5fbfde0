"""Idempotency keys: a repeated request gets the first answer, byte for byte, for a day.

A request locks its key to the end of the transaction, so a parallel repetition waits for the first. The record is
inserted after the operation and committed with it: neither exists without the other. An error rolls both back, and the
next attempt counts as the first.
"""

import re
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from typing import Any

from django.db import OperationalError, connection, transaction
from django.http import HttpResponse
from psycopg.errors import LockNotAvailable
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memories import conf
from memories.api.endpoints import Endpoint
from memories.curation.replays import LIFETIME
from memories.exceptions import Erased, IdempotencyKeyBusy, IdempotencyKeyReused, InvalidInput
from memories.models import IdempotencyRecord

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LOCK_TIMEOUT_SECONDS = 10
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
# The long timeout holds for this lock alone: the operation waits for its own locks as it would without a key.
_LOCK = """
    WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS patience)
    SELECT set_config('lock_timeout', %(patience)s, true),
        pg_advisory_xact_lock(%(lock)s),
        set_config('lock_timeout', before.patience, true)
    FROM before
"""
_INSERT = """
    INSERT INTO memories_idempotencyrecord
        (tenant_id, api_key_id, endpoint, key_digest, request_digest, status, etag, body, fact_id, created_at)
    VALUES (%(tenant_id)s, %(api_key_id)s, %(endpoint)s, %(key_digest)s, %(request_digest)s, %(status)s,
        %(etag)s, %(body)s, %(fact_id)s, %(created_at)s)
    RETURNING id
"""
_INSERT_PEOPLE = """
    INSERT INTO memories_idempotencyrecord_end_users (idempotencyrecord_id, enduser_id)
    SELECT record.id, unnest(%(people)s::uuid[]) FROM record
"""
# One statement for the record and its people: the operation's locks stay held meanwhile. Of a distributed database the
# record is on another node than its people.
_RECORD = f"WITH record AS ({_INSERT}) {_INSERT_PEOPLE}"
_RECORD_PEOPLE = f"WITH record AS (SELECT %(record)s::bigint AS id) {_INSERT_PEOPLE}"


def once(operation_id: str, view: Callable[..., Response]) -> Callable[..., HttpResponse]:
    """The view's method. A request with an Idempotency-Key runs it once; later requests get the recorded answer.

    Errors: InvalidInput (the key), IdempotencyKeyReused, IdempotencyKeyBusy, Erased (a person of the first answer was
    erased since), and those of the view.
    """

    @wraps(view)
    def answer(endpoint: Endpoint, request: Request, **path: Any) -> HttpResponse:
        key = request.headers.get(HEADER)
        if key is None:
            return view(endpoint, request, **path)
        if not _KEY.fullmatch(key):
            raise InvalidInput.at(HEADER, "Give 1 to 255 visible ASCII characters, without spaces.")
        record = IdempotencyRecord(
            tenant_id=endpoint.caller.key.tenant_id,
            api_key=endpoint.caller.key,
            endpoint=operation_id,
            key_digest=_keyed("key", key.encode()),
            request_digest=_request_digest(request),
            created_at=endpoint.now,
        )
        with transaction.atomic():
            first = _first(record)
            if first is not None:
                return _replayed(first, record)
            return _recorded(record, view(endpoint, request, **path), endpoint)

    return answer


def _request_digest(request: Request) -> bytes:
    """Digest of the bytes as they came: a body in other bytes with the same meaning is another request."""
    raw = request._request
    address = f"{raw.path}?{raw.META.get('QUERY_STRING', '')}\n"
    return _keyed("request", address.encode() + raw.body)


def _keyed(what: str, content: bytes) -> bytes:
    """Keyed digest: whoever guesses a name could check it against a plain hash of a key that is a name."""
    return conf.digest(f"idempotency {what}", sha256(content).digest())


def _first(record: IdempotencyRecord) -> IdempotencyRecord | None:
    """The record under the same key, if any. Waits for a request that has the key. Errors: IdempotencyKeyBusy."""
    _lock(record)
    # A statement of its own: it sees what others committed during the wait.
    first = IdempotencyRecord.objects.filter(
        api_key=record.api_key, endpoint=record.endpoint, key_digest=record.key_digest
    ).first()
    if first is not None and first.created_at <= record.created_at - LIFETIME:
        first.delete()
        return None
    return first


def _lock(record: IdempotencyRecord) -> None:
    """Lock the key until the transaction ends. Two keys whose digests share 64 bits merely wait for each other."""
    name = sha256(record.api_key_id.bytes + record.endpoint.encode() + record.key_digest).digest()
    lock = int.from_bytes(name[:8], signed=True)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_LOCK, {"patience": f"{LOCK_TIMEOUT_SECONDS}s", "lock": lock})
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise IdempotencyKeyBusy from error
        raise


def _recorded(record: IdempotencyRecord, given: Response, endpoint: Endpoint) -> HttpResponse:
    record.status, record.etag = given.status_code, given.headers.get("ETag", "")
    record.body = JSONRenderer().render(given.data)
    record.fact_id = endpoint.subject_fact
    values = {field.attname: getattr(record, field.attname) for field in record._meta.concrete_fields}
    with connection.cursor() as cursor:
        values["people"] = sorted(endpoint.subjects)
        if connection.settings_dict["DISTRIBUTED"]:
            cursor.execute(_INSERT, values)
            cursor.execute(_RECORD_PEOPLE, values | {"record": cursor.fetchone()[0]})
        else:
            cursor.execute(_RECORD, values)
    return _answer(record)


def _replayed(first: IdempotencyRecord, record: IdempotencyRecord) -> HttpResponse:
    if bytes(first.request_digest) != record.request_digest:
        raise IdempotencyKeyReused
    if first.status == Erased.status:
        # A person of that answer was erased since: repeating the request would bring them back.
        raise Erased
    answer = _answer(first)
    answer.headers[REPLAYED] = "true"
    return answer


def _answer(record: IdempotencyRecord) -> HttpResponse:
    headers = {"ETag": record.etag} if record.etag else {}
    return HttpResponse(bytes(record.body), status=record.status, content_type="application/json", headers=headers)
