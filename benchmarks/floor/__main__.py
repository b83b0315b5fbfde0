"""`python -m benchmarks.floor host:port`: make the table and serve, with the hub's own gunicorn settings."""

import os
import sys
from typing import Any

import django
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection

from memoryhub import roles

os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.floor.settings"
# It makes a table, as only the owner can; whoever started it may have been told to serve.
roles.choose_role("floor")
django.setup()

# Both read the settings as they are imported.
from benchmarks.floor.models import Row  # noqa: E402
from memories.web.server import WebServer  # noqa: E402


class FloorServer(WebServer):
    def load(self) -> Any:
        return WSGIHandler()


def main() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Row)
    connection.close()
    FloorServer(sys.argv[1]).run()


main()
