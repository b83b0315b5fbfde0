"""`manage.py worker`: does the background work until a stop signal."""

import gc
from argparse import SUPPRESS
from importlib import import_module
from typing import Any

from django.core.management.base import CommandParser
from django.db import connections

from memories.db import statement_timeouts, tenancy
from memories.jobs.cluster import GRACE_SECONDS, keep_cluster
from memories.jobs.nightly_backup import NightlyBackup
from memories.jobs.supervision import Child, Supervisor, beside, follow_parent, own_child
from memories.llm import client, embeddings, tokens
from memories.management import HubCommand
from memories.telemetry import slots
from memories.text.injection import detection

BACKUP_GRACE_SECONDS = 2.0


class Command(HubCommand):
    help = "Do the background work: extraction, embedding and what else is due. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        _load()
        if not supervised:
            # A process without threads and connections: what replaces a part that died is a fork of it. The system
            # checks may have opened one.
            connections.close_all()
            Supervisor(parts()).run()
            return
        follow_parent(grace=GRACE_SECONDS + 2)
        slots.sweep()
        statement_timeouts.as_a_worker()
        tenancy.as_a_sweeper()
        with beside(NightlyBackup(), grace=BACKUP_GRACE_SECONDS):
            keep_cluster()


def parts() -> list[Child]:
    """The processes of a worker, for a supervisor."""
    return [own_child("worker"), own_child("embedder")]


def _load() -> None:
    """Load what the pool and the embedder share. memories.tasks imports the rest."""
    tokens.preload()
    client.preload()
    detection.preload()
    # The pool embeds candidates, and judges them by the hub's own vectors. Without vectors it stores them, and the
    # embedder logs what is wrong.
    embeddings.warm_needed()
    for name in ("memories.tasks", "memories.jobs.embedder"):
        import_module(name)
    # What is loaded now stays. A collection that looked through it would make a copy of it in each process.
    gc.collect()
    gc.freeze()
