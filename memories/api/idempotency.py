"""Idempotency keys: a request that comes again gets the first answer, byte for byte, for a day.

The record is inserted before the operation and committed with it: the unique index makes a parallel double wait for
the first, and neither can be there without the other. An error rolls both back; the next attempt is a first one.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, OperationalError, connection, transaction
from django.http import HttpResponse
from psycopg.errors import LockNotAvailable
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.endpoints import Endpoint
from memories.exceptions import IdempotencyKeyBusy, IdempotencyKeyReused, InvalidInput
from memories.models import IdempotencyRecord

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LIFETIME = timedelta(hours=24)
PATIENCE_SECONDS = 10
# More than one request adds, so that old records never pile up.
SWEPT_AT_ONCE = 20
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def once(operation_id: str, view: Callable[..., Response]) -> Callable[..., HttpResponse]:
    """The view's method; a request with an Idempotency-Key runs it once and is answered from the record after that.

    Errors: InvalidInput (the key), IdempotencyKeyReused, IdempotencyKeyBusy, and those of the view.
    """

    @wraps(view)
    def answer(endpoint: Endpoint, request: Request, **path: Any) -> HttpResponse:
        key = request.headers.get(HEADER)
        if key is None:
            return view(endpoint, request, **path)
        if not _KEY.fullmatch(key):
            raise InvalidInput.at(HEADER, "Give 1 to 255 visible ASCII characters, without spaces.")
        record = IdempotencyRecord(
            api_key=endpoint.caller.key,
            endpoint=operation_id,
            key_digest=sha256(key.encode()).digest(),
            request_digest=_request_digest(request),
            created_at=endpoint.now,
        )
        with transaction.atomic():
            first = _claimed(record)
            if first is not None:
                return _replayed(first, record)
            return _recorded(record, view(endpoint, request, **path), endpoint)

    return answer


def sweep(*, now: datetime) -> None:
    """Take away some records that are older than a day; inside the caller's transaction, never waiting for a lock."""
    old = IdempotencyRecord.objects.filter(created_at__lte=now - LIFETIME).order_by("created_at")
    found = list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    if found:
        IdempotencyRecord.objects.filter(pk__in=found).delete()


def _request_digest(request: Request) -> bytes:
    """Of the bytes as they came: a body that merely means the same counts as another one."""
    raw = request._request
    address = f"{raw.path}?{raw.META.get('QUERY_STRING', '')}\n"
    return sha256(address.encode() + raw.body).digest()


def _claimed(record: IdempotencyRecord) -> IdempotencyRecord | None:
    """None when the record was inserted as the first with its key, else that first. Errors: IdempotencyKeyBusy."""
    same = IdempotencyRecord.objects.filter(
        api_key=record.api_key, endpoint=record.endpoint, key_digest=record.key_digest
    )
    forgotten = record.created_at - LIFETIME
    _wait_at_most(f"'{PATIENCE_SECONDS}s'")
    try:
        while not _inserted(record):
            first = same.filter(created_at__gt=forgotten).first()
            if first is not None:
                return first
            same.filter(created_at__lte=forgotten).delete()
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise IdempotencyKeyBusy from error
        raise
    # The operation waits for its own locks as it would without a key.
    _wait_at_most("DEFAULT")
    return None


def _inserted(record: IdempotencyRecord) -> bool:
    """False when there is one with the same key; waits for a transaction that has written one and not ended yet."""
    try:
        with transaction.atomic():
            record.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _wait_at_most(limit: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout TO {limit}")


def _recorded(record: IdempotencyRecord, given: Response, endpoint: Endpoint) -> HttpResponse:
    record.status, record.etag = given.status_code, given.headers.get("ETag", "")
    record.body = JSONRenderer().render(given.data)
    record.fact_id = endpoint.told_fact
    record.save(update_fields=["status", "etag", "body", "fact"])
    told = IdempotencyRecord.end_users.through
    told.objects.bulk_create(
        [told(idempotencyrecord_id=record.pk, enduser_id=person) for person in sorted(endpoint.told_people)]
    )
    sweep(now=record.created_at)
    return _answer(record)


def _replayed(first: IdempotencyRecord, record: IdempotencyRecord) -> HttpResponse:
    if bytes(first.request_digest) != record.request_digest:
        raise IdempotencyKeyReused
    answer = _answer(first)
    answer.headers[REPLAYED] = "true"
    return answer


def _answer(record: IdempotencyRecord) -> HttpResponse:
    headers = {"ETag": record.etag} if record.etag else {}
    return HttpResponse(bytes(record.body), status=record.status, content_type="application/json", headers=headers)
