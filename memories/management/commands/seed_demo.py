"""`manage.py seed_demo`: writes the demo into an empty database, its sign-in and key to $MEMORYHUB_HOME/demo.json."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from memories.management import HubCommand, demo


class Command(HubCommand):
    help = (
        "Seed a demo person, sign-in and key into an empty database; a database in use is left as it is. Refused where "
        "the public address is not local."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if not demo.wanted():
            raise CommandError(f"The public address, {settings.PUBLIC_URL}, is not local: no demo there.")
        seeded = demo.seed_and_note(now=timezone.now())
        done = f"The demo is seeded; its sign-in and key are in {demo.path()}."
        self.stdout.write(done if seeded else "Not empty: nothing seeded.")
