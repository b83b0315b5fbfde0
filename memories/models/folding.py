"""Folding of text so that the same statement compares equal, and the hashes that stand for it."""

import hashlib
import hmac
import unicodedata

from django.conf import settings

from memories.conf import pepper

# What stands around a sentence, in any script, and changes nothing of what it says; after NFKC.
_BEFORE = " \"'“”‘’„‚«»‹›([{「『【《〈¿¡"
_BEHIND = _BEFORE + ")]}」』】》〉.!?,;:…~–—-。、؟،؛۔।॥።։។။"

# Of the hashes under a secret key: it must never change.
_OLDER_PURPOSE = b"memoryhub.refusal.v1"


def fold(text: str) -> str:
    """NFKC, case folded, runs of white space as one space, none at the ends."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Case folding can leave text that NFKC would compose again.
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def bare(folded: str) -> str:
    """A folded text without the quotation marks, brackets and marks of a sentence around it, unless that is all."""
    return folded.lstrip(_BEFORE).rstrip(_BEHIND) or folded


def text_digest(text: str) -> bytes:
    """SHA-256 (32 bytes) of the folded text."""
    return hashlib.sha256(fold(text).encode()).digest()


def refusal_of_text(content: str) -> bytes:
    """What stands for a refused text."""
    return _refusal("text", content)


def refusal_of_key(category: str, key: str) -> bytes:
    """What stands for a refused (category, key)."""
    return _refusal("key", category, key)


def older_refusals(*parts: str) -> tuple[bytes, ...]:
    """What stood for ("text", content) or ("key", category, key) while refusals were kept under the secret key: one
    hash for the present key, one for each of MEMORYHUB_SECRET_KEY_FALLBACKS."""
    message = "\x00".join(fold(part) for part in parts).encode()
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    derived = [hmac.digest(str(key).encode(), _OLDER_PURPOSE, "sha256") for key in keys]
    return tuple(hmac.digest(key, message, "sha256") for key in derived)


def _refusal(*parts: str) -> bytes:
    """HMAC-SHA-256 (32 bytes) of the folded parts under the pepper: without it, it tells nothing about them."""
    return pepper.digest("refusal", *(fold(part).encode() for part in parts))
