"""Keys that all hosts of a hub share. Heartbeats have their fingerprints, so that `doctor` sees which differ."""

import hmac
from hashlib import sha256

from django.conf import settings

PURPOSE = b"fingerprint of a shared key"
# Enough to tell keys apart.
DIGITS = 12


def fingerprints() -> str:
    """Of the secret key, the one of second factors and the pepper; from none of them its key can be found."""
    return " ".join(_fingerprint(key) for key in _keys().values())


def that_differ(fingerprints_of_another: str) -> list[str]:
    """The variables of the keys that another host has otherwise."""
    theirs = fingerprints_of_another.split()
    return [name for (name, key), one in zip(_keys().items(), theirs, strict=False) if _fingerprint(key) != one]


def _keys() -> dict[str, str]:
    return {
        "MEMORYHUB_SECRET_KEY": settings.SECRET_KEY,
        "MEMORYHUB_MFA_KEY": settings.MEMORYHUB_MFA_KEY,
        "MEMORYHUB_PEPPER": settings.MEMORYHUB_PEPPER,
    }


def _fingerprint(key: str) -> str:
    return hmac.new(key.encode(), PURPOSE, sha256).hexdigest()[:DIGITS]
