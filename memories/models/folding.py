"""Folding of text so that the same statement compares equal, and the hashes that stand for it."""

import hashlib
import hmac
import unicodedata

from django.conf import settings

_PURPOSE = b"memoryhub.refusal.v1"


def fold(text: str) -> str:
    """NFKC, case folded, runs of white space as one space, none at the ends."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Case folding can leave text that NFKC would compose again.
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def text_digest(text: str) -> bytes:
    """SHA-256 (32 bytes) of the folded text."""
    return hashlib.sha256(fold(text).encode()).digest()


def refusal_of_text(content: str) -> bytes:
    """What stands for a refused text."""
    return _keyed_digest("text", content)


def refusal_of_key(category: str, key: str) -> bytes:
    """What stands for a refused (category, key)."""
    return _keyed_digest("key", category, key)


def _keyed_digest(*parts: str) -> bytes:
    """HMAC-SHA-256 (32 bytes) of the folded parts: without the settings' key it tells nothing about them."""
    message = "\x00".join(fold(part) for part in parts).encode()
    key = hmac.digest(settings.SECRET_KEY.encode(), _PURPOSE, "sha256")
    return hmac.digest(key, message, "sha256")
