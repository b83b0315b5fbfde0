"""`manage.py worker`: does the background work until it is told to stop."""

from argparse import SUPPRESS
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memories.llm import tokens
from memories.management.cluster import GRACE_SECONDS, run_cluster
from memories.management.supervision import follow_parent


class Command(BaseCommand):
    help = "Do the background work: extraction and what else is due. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(patience=GRACE_SECONDS + 2)
        # Before the pool is forked, which then shares it.
        tokens.warm()
        if not run_cluster():
            raise CommandError("The worker's cluster died.")
