"""`manage.py reembed`: changes the embedding model while the hub serves."""

import time
from typing import Any

from django.core.management.base import CommandError, CommandParser

from memories.embedding import reembedding
from memories.exceptions import MemoryHubError
from memories.llm import embeddings
from memories.management import HubCommand, counted

# Searches that began in the old space end there.
GRACE_SECONDS = 5.0


class Command(HubCommand):
    help = "Embed everything with another model while the old vectors serve, switch, and remove the old ones."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", help="Default: the configured one.")

    def handle(self, *, model: str | None, **_options: Any) -> None:
        wanted = model or embeddings.current_model()
        try:
            with reembedding.alone():
                rebuild = reembedding.reembed(model=wanted, report=self._report)
                if rebuild is None:
                    self.stdout.write(f"{wanted} serves already.")
                else:
                    embedded = counted(rebuild.embedded, "text")
                    self.stdout.write(f"{wanted} serves: {embedded} embedded, {len(rebuild.refused)} refused.")
                    time.sleep(GRACE_SECONDS)
                self.stdout.write(f"{counted(reembedding.clear_retired(), 'vector')} of earlier models removed.")
        except MemoryHubError as error:
            raise CommandError(error.detail) from error

    def _report(self, embedded: int) -> None:
        if embedded % 1_000 < embeddings.BATCH:
            self.stdout.write(f"{counted(embedded, 'text')} embedded …")
