"""`manage.py embedder`: what `manage.py worker` runs beside its cluster; alone, one more that stands by."""

import os
from argparse import SUPPRESS
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memories.management.embedder import Embedder
from memories.management.supervision import follow_parent

# A call to an endpoint that is cut off here is made again by the next embedder.
PATIENCE_SECONDS = 5.0
NICENESS = 10


class Command(BaseCommand):
    help = "Embed texts in the background. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(patience=PATIENCE_SECONDS)
        # Whoever posts or asks goes first: vectors can wait a moment for a core.
        os.nice(NICENESS)
        Embedder().run()
