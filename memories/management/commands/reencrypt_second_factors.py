"""`manage.py reencrypt_second_factors`: after a change of MEMORYHUB_MFA_KEY, so that its fallbacks can go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories.curation.access.second_factors import reencrypt_second_factors


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of operators' second factors under MEMORYHUB_MFA_KEY; then MEMORYHUB_MFA_KEY_FALLBACKS "
        "can be unset. Exit code 1: some cannot be decrypted with any of the keys."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        renewed, unreadable = reencrypt_second_factors()
        self.stdout.write(f"{renewed} encrypted under the present key.")
        if unreadable:
            raise CommandError(
                f"{unreadable} cannot be decrypted: add the key that they were set up with to "
                "MEMORYHUB_MFA_KEY_FALLBACKS, or remove these second factors on the pages of their operators."
            )
