"""The keys under which operators' second factors and tenants' model keys are encrypted: the present one, and those
before it."""

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

SECOND_FACTOR = b"second factor"


class Unreadable(Exception):
    """A secret was encrypted under a key that the hub does not have."""


def encrypt(text: str, *, purpose: bytes = SECOND_FACTOR) -> str:
    """Under MEMORYHUB_MFA_KEY. What was encrypted for one purpose is unreadable for another."""
    return _fernet(settings.MEMORYHUB_MFA_KEY, purpose).encrypt(text.encode()).decode()


def decrypt(token: str, *, purpose: bytes = SECOND_FACTOR) -> str:
    """What was encrypted under any of the keys. Errors: Unreadable, also when there is nothing in it."""
    try:
        text = MultiFernet([_fernet(key, purpose) for key in _keys()]).decrypt(token.encode()).decode()
    except InvalidToken:
        raise Unreadable from None
    if not text:
        # The codes of an empty secret are the same for everybody: anybody can compute them.
        raise Unreadable
    return text


def is_present(token: str, *, purpose: bytes = SECOND_FACTOR) -> bool:
    """Whether it was encrypted under MEMORYHUB_MFA_KEY, and not under one before it."""
    try:
        _fernet(settings.MEMORYHUB_MFA_KEY, purpose).decrypt(token.encode())
    except InvalidToken:
        return False
    return True


def _keys() -> list[str]:
    """The newest first. At the end the secret key and its fallbacks: before, it was the only key of the hub."""
    later = [settings.MEMORYHUB_MFA_KEY, *settings.MEMORYHUB_MFA_KEY_FALLBACKS]
    return [*later, settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]


def _fernet(key: str, purpose: bytes = SECOND_FACTOR) -> Fernet:
    digest = hashlib.sha256(purpose + key.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
