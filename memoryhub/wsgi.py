"""The WSGI entry point that gunicorn serves."""

import os
from typing import Any

import django
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.utils.http import parse_header_parameters

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")


class Utf8Request(WSGIRequest):
    """Text is UTF-8, whatever charset the Content-Type claims.

    Django would decode the query with it, and `charset=hex` ends that in a 500 before any code of ours runs.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))


class Utf8Handler(WSGIHandler):
    request_class = Utf8Request


django.setup(set_prefix=False)
application = Utf8Handler()
