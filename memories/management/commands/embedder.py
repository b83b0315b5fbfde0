"""`manage.py embedder`: `manage.py worker` runs it beside its cluster. Run alone, it is one more that stands by."""

import os
from argparse import SUPPRESS
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memories.db import statement_timeouts
from memories.jobs.embedder import Embedder
from memories.jobs.supervision import follow_parent

# The next embedder repeats a call to an endpoint that is cut off here.
GRACE_SECONDS = 5.0
NICENESS = 10
# Where it exists, Linux divides the processor among sessions first, and a process's own niceness counts within its
# session alone. A supervised embedder has a session of its own.
SESSION = Path("/proc/self/autogroup")


class Command(BaseCommand):
    help = "Embed texts in the background. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(grace=GRACE_SECONDS)
        # Requests go first: vectors can wait a moment for a core.
        os.nice(NICENESS)
        if supervised:
            _make_session_nice()
        statement_timeouts.as_a_worker()
        Embedder().run()


def _make_session_nice() -> None:
    # Another system, a read-only /proc, or another session that did the same a moment ago.
    with suppress(OSError):
        SESSION.write_text(str(NICENESS), encoding="ascii")
