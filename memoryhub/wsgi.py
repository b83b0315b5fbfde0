"""The WSGI entry point that gunicorn serves."""

import os
from typing import Any

import django
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.utils.http import parse_header_parameters

from memoryhub import roles

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
# A WSGI server may load this without manage.py.
roles.serve()


class Utf8Request(WSGIRequest):
    """Ignores the charset of the Content-Type: text is UTF-8.

    Django would decode the query with it, and `charset=hex` would cause a 500 before our code runs.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        except ValueError:
            # A parameter in a character set that there is not. Others read the header again.
            meta["CONTENT_TYPE"] = meta["CONTENT_TYPE"].partition(";")[0]
            self.content_type, self.content_params = parse_header_parameters(meta["CONTENT_TYPE"])


class Utf8Handler(WSGIHandler):
    request_class = Utf8Request


django.setup(set_prefix=False)
application = Utf8Handler()
