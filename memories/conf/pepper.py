"""The pepper: the secret that is not in the database, under which ids of erased people are kept as keyed hashes."""

import hmac
import unicodedata
import uuid
from hashlib import sha256

from django.conf import settings


def digest(purpose: str, *parts: bytes) -> bytes:
    """HMAC-SHA256 (RFC 2104) of the parts, 32 bytes; each with its length before it, so that no two lists are alike.

    Digests of different purposes, like `tombstone`, tell nothing of one another.
    """
    message = b"".join(len(part).to_bytes(8) + part for part in (purpose.encode(), *parts))
    return hmac.digest(settings.MEMORYHUB_PEPPER.encode(), message, sha256)


def digest_of_person(tenant_id: uuid.UUID, external_id: str) -> bytes:
    """What a tombstone, a case and the ledger keep instead of the caller's id: of its NFKC, casefolded and stripped."""
    normal = unicodedata.normalize("NFKC", external_id).casefold().strip()
    return digest("tombstone", tenant_id.bytes, normal.encode())
