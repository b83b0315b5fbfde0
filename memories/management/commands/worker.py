"""`manage.py worker`: does the background work until a stop signal."""

import gc
from argparse import SUPPRESS
from importlib import import_module
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memories.db import statement_timeouts, tenancy
from memories.jobs.cluster import GRACE_SECONDS, keep_cluster
from memories.jobs.nightly_backup import NightlyBackup
from memories.jobs.supervision import beside, follow_parent, own_child
from memories.llm import client, embeddings, tokens
from memories.telemetry import slots

# Half a second is enough for a batch of the local model. A call to an endpoint is repeated later.
EMBEDDER_GRACE_SECONDS = 2.0


class Command(BaseCommand):
    help = "Do the background work: extraction, embedding and what else is due. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(grace=GRACE_SECONDS + 2)
        slots.sweep()
        statement_timeouts.as_a_worker()
        tenancy.as_a_sweeper()
        # Loaded before the pool and the embedder are forked, so that they share it. memories.tasks imports the rest.
        tokens.warm()
        client.warm()
        # The pool embeds candidates, and judges them by the hub's own vectors. Without vectors it stores them, and the
        # embedder logs what is wrong.
        embeddings.warm_needed()
        import_module("memories.tasks")
        # What is loaded now stays. A collection that looked through it would make a copy of it in each process.
        gc.collect()
        gc.freeze()
        embedder = beside(own_child("embedder"), grace=EMBEDDER_GRACE_SECONDS)
        with embedder, beside(NightlyBackup(), grace=EMBEDDER_GRACE_SECONDS):
            keep_cluster()
