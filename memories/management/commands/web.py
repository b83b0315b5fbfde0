"""`manage.py web`: the API and the admin, without a worker."""

from argparse import SUPPRESS
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import connections

from memories.jobs.supervision import follow_parent
from memories.management import HubCommand
from memories.telemetry import slots
from memories.web.application import HubServer
from memories.web.server import GRACE_SECONDS


class Command(HubCommand):
    help = "Serve the API and the admin. Extraction needs `manage.py worker` beside it; `up` runs both."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bind", default=f"127.0.0.1:{settings.PORT}", help="host:port")
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, bind: str, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(grace=GRACE_SECONDS + 2)
        slots.sweep()
        # The system checks may have opened a connection. The forked processes must not share it.
        connections.close_all()
        HubServer(bind).run()
