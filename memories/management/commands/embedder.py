"""`manage.py embedder`: `manage.py worker` runs it beside its cluster. Run alone, it is one more that stands by."""

import os
from argparse import SUPPRESS
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from memories.db import statement_timeouts, tenancy
from memories.jobs.embedder import Embedder
from memories.jobs.supervision import follow_parent
from memories.management import HubCommand

# The next embedder repeats a call to an endpoint that is cut off here.
GRACE_SECONDS = 5.0
NICENESS = 10
AUTOGROUP = Path("/proc/self/autogroup")


class Command(HubCommand):
    help = "Embed texts in the background. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(grace=GRACE_SECONDS)
        yield_to_requests()
        statement_timeouts.as_a_worker()
        tenancy.as_a_sweeper()
        Embedder().run()


def yield_to_requests() -> None:
    """Vectors can wait a moment for a core."""
    os.nice(NICENESS)
    # Linux may share its cores between sessions first (sched(7), autogroup); then only a session's niceness counts
    # beside the web server, which has another one. A session that others share, such as a shell's, is left alone.
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            AUTOGROUP.write_text(f"{NICENESS}\n")
