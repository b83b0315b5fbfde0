"""The tenancy of a request: no tenant, until the key or the operator is known."""

from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from memories import content_policy
from memories.db import tenancy
from memories.db.tenancy import Tenancy


class TenancyMiddleware:
    """A request's tenancy ends with it, on whatever thread the next one runs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with tenancy.nothing():
            try:
                response = self.get_response(request)
            finally:
                content_policy.flush()
            own = tenancy.current()
        # Files that ask the database nothing are sent as they are.
        if isinstance(response, StreamingHttpResponse) and own is not None and own != tenancy.NOTHING:
            # The rest of it is made when the middleware has returned.
            response.streaming_content = _continued(iter(response), own)
        return response


def _continued(parts: Iterator[bytes], own: Tenancy) -> Iterator[bytes]:
    while True:
        with tenancy.within(own):
            part = next(parts, None)
        if part is None:
            return
        yield part
