"""How far the statements of a request reach: nothing, until the key or the operator is known."""

from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from memories.db import reach
from memories.db.reach import Reach


class ReachMiddleware:
    """What is said of a request's reach ends with it, on whatever thread the next one runs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with reach.nothing():
            response = self.get_response(request)
            said = reach.current()
        # Files that ask the database nothing are sent as they are.
        if isinstance(response, StreamingHttpResponse) and said is not None and said != reach.NOTHING:
            # The rest of it is made when the middleware has returned.
            response.streaming_content = _continued(iter(response), said)
        return response


def _continued(parts: Iterator[bytes], said: Reach) -> Iterator[bytes]:
    while True:
        with reach.within(said):
            part = next(parts, None)
        if part is None:
            return
        yield part
