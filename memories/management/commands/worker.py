"""`manage.py worker`: does the background work until it is told to stop."""

from argparse import SUPPRESS
from contextlib import suppress
from importlib import import_module
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memories.exceptions import EmbeddingError
from memories.llm import client, embeddings, tokens
from memories.management.cluster import GRACE_SECONDS, keep_cluster
from memories.management.supervision import Child, beside, follow_parent, own_command

# Half a second is enough for a batch of the local model; an endpoint's call is made again.
EMBEDDER_GRACE_SECONDS = 2.0


class Command(BaseCommand):
    help = "Do the background work: extraction, embedding and what else is due. SIGTERM and Ctrl-C end it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--supervised", action="store_true", help=SUPPRESS)

    def handle(self, *, supervised: bool, **_options: Any) -> None:
        if supervised:
            follow_parent(patience=GRACE_SECONDS + 2)
        # Before the pool is forked, which then shares them; the task's module brings the whole pipeline.
        tokens.warm()
        client.warm()
        # The pool embeds candidates; without vectors they are stored, and the embedder says what is wrong.
        with suppress(EmbeddingError):
            embeddings.warm()
        import_module("memories.tasks")
        with beside(Child("embedder", own_command("embedder")), grace=EMBEDDER_GRACE_SECONDS):
            keep_cluster()
