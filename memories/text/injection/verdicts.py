"""Cached verdicts on texts. The cache keeps digests under a key of the process: a person may be erased meanwhile."""

import secrets
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b

_KEY = secrets.token_bytes(32)


class _Texts:
    """The arguments of a call, compared by their digest."""

    __slots__ = ("_digest", "texts")

    def __init__(self, texts: tuple[str, ...]) -> None:
        digest = blake2b(key=_KEY, digest_size=16)
        for text in texts:
            raw = text.encode(errors="surrogatepass")
            digest.update(len(raw).to_bytes(8, "big") + raw)
        self._digest, self.texts = digest.digest(), texts

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Texts) and self._digest == other._digest


class CachedVerdict:
    """A function of texts whose verdicts are cached, at most `size` of them; what it raises is not cached."""

    def __init__(self, judge: Callable[..., bool], size: int) -> None:
        @lru_cache(maxsize=size)
        def by_digest(key: _Texts) -> bool:
            return judge(*key.texts)

        self._by_digest = by_digest

    def __call__(self, *texts: str) -> bool:
        key = _Texts(texts)
        try:
            return self._by_digest(key)
        finally:
            # The cache may keep this object.
            key.texts = ()

    def cache_clear(self) -> None:
        self._by_digest.cache_clear()


def cached_verdict(size: int) -> Callable[[Callable[..., bool]], CachedVerdict]:
    """Decorate a function of texts as a CachedVerdict."""
    return lambda judge: CachedVerdict(judge, size)
