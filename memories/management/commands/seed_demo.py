"""Write the demo into an empty database, and its sign-in and key into $MEMORYHUB_HOME/demo.json."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from memories.management import demo


class Command(BaseCommand):
    help = "Seed a demo person, sign-in and key into an empty database; a database in use is left as it is."

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.HOME / "demo.json"
        with transaction.atomic():
            access = demo.seed(now=timezone.now())
            if access:
                # Before the commit: a sign-in that nobody was told would be lost for good.
                _write_private(path, json.dumps(asdict(access)))
        said = f"The demo is seeded; its sign-in and key are in {path}." if access else "Not empty: nothing seeded."
        self.stdout.write(said)


def _write_private(path: Path, text: str) -> None:
    """Replace the file at once, readable by its owner alone."""
    draft = path.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)
