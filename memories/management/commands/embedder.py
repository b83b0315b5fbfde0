"""`manage.py embedder`: `manage.py worker` runs it beside its cluster. Run alone, it is one more that stands by."""

import os
from argparse import SUPPRESS
from typing import Any

from django.core.management.base import CommandParser

from memories.db import statement_timeouts, tenancy
from memories.jobs.embedder import Embedder
from memories.jobs.supervision import follow_parent
from memories.management import HubCommand

# The next embedder repeats a call to an endpoint that is cut off here.
GRACE_SECONDS = 5.0
NICENESS = 10


class Command(HubCommand):
    help = "Embed texts in the background. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(grace=GRACE_SECONDS)
        # Requests go first: vectors can wait a moment for a core.
        os.nice(NICENESS)
        statement_timeouts.as_a_worker()
        tenancy.as_a_sweeper()
        Embedder().run()
