"""Every answer carries an X-Request-ID: the caller's own when it is well-formed, else a new one."""

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from memories.telemetry import log_fields

HEADER = "X-Request-ID"
# What may stand in a header, a log line and the audit trail without escaping; 64 is the trail's column.
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")


class RequestIdMiddleware:
    """Sets `request.request_id` and the answer's header. It is outermost, so that errors carry the id too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        request_id = given if _WELL_FORMED.fullmatch(given) else uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        # The web server's line about the answer has it, too.
        request.META[log_fields.ANSWERED_ID] = request_id
        with log_fields.at_work(log_fields.REQUEST, request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request_id
        return response


def request_id_of(request: object) -> str:
    """The id that the middleware gave this request; "" outside of one."""
    request_id: str = getattr(request, "request_id", "")
    return request_id
