"""Write the demo into an empty database, and its sign-in and key into $MEMORYHUB_HOME/demo.json."""

import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from memories import private_files
from memories.management import demo


class Command(BaseCommand):
    help = "Seed a demo person, sign-in and key into an empty database; a database in use is left as it is."

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.HOME / "demo.json"
        with transaction.atomic():
            access = demo.seed(now=timezone.now())
            if access:
                # Before the commit: a sign-in that nobody was told would be lost for good.
                private_files.write(path, json.dumps(asdict(access)).encode())
        said = f"The demo is seeded; its sign-in and key are in {path}." if access else "Not empty: nothing seeded."
        self.stdout.write(said)
