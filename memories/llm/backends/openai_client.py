"""One client of the openai library per process, endpoint and key, over the bounded transport."""

from functools import lru_cache

import httpx2
import openai

from memories.llm.backends.transport import BoundedTransport

# Endpoints of one's own often want no key, but the library does.
_NO_KEY = "none"


@lru_cache(maxsize=32)
def client_of(
    _process: int, base_url: str, api_key: str, *, entered: bool = False, guarded: bool = False
) -> openai.OpenAI:
    """One client per process, endpoint and key: a forked child must not use its parent's sockets and locks.

    `entered`: the address is a tenant's own. `guarded`: it must be public.
    """
    http_client = httpx2.Client(
        transport=BoundedTransport(base_url, guarded=guarded),
        headers={"Accept-Encoding": "identity"},
        follow_redirects=False,
    )
    client = openai.OpenAI(
        api_key=api_key or _NO_KEY,
        base_url=base_url or None,
        # The rows that wait hold the only retry policy.
        max_retries=0,
        http_client=http_client,
    )
    if entered:
        # The library takes them from the environment. They are of the hub's account.
        client.organization = client.project = None
    return client
