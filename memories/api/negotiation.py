"""Which form an answer of version 1 has: JSON, or 406."""

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

# What nearly every client sends. To weigh it against the one renderer takes as long as to write most answers.
_JSON = frozenset({"*/*", "application/json"})


class Negotiation(DefaultContentNegotiation):
    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        """The renderer and its media type. Errors: NotAcceptable."""
        given = request._request.META
        # A parameter may name a form, too.
        if given.get("HTTP_ACCEPT", "*/*") in _JSON and not given.get("QUERY_STRING"):
            [json] = renderers
            return json, json.media_type
        return super().select_renderer(request, renderers, format_suffix)
