"""`manage.py reencrypt_second_factors`: after a change of MEMORYHUB_MFA_KEY, so that its fallbacks can go."""

from typing import Any

from django.core.management.base import CommandError

from memories.curation.access.second_factors import reencrypt_second_factors
from memories.curation.tenants.language_models import reencrypt_model_keys
from memories.curation.tenants.webhooks import reencrypt_webhook_secrets
from memories.management import HubCommand


class Command(HubCommand):
    help = (
        "Encrypt the secrets of operators' second factors and of webhooks, and the keys of tenants' models, under "
        "MEMORYHUB_MFA_KEY; "
        "then MEMORYHUB_MFA_KEY_FALLBACKS can be unset. Exit code 1: some cannot be decrypted with any of the keys."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        factors, factors_lost = reencrypt_second_factors()
        keys, keys_lost = reencrypt_model_keys()
        secrets, secrets_lost = reencrypt_webhook_secrets()
        self.stdout.write(f"{factors + keys + secrets} encrypted under the present key.")
        if factors_lost or keys_lost or secrets_lost:
            raise CommandError(
                f"{factors_lost + keys_lost + secrets_lost} cannot be decrypted: add the key that they were set up "
                "with to MEMORYHUB_MFA_KEY_FALLBACKS, or remove these second factors on the pages of their operators, "
                "enter the keys of these models on the pages of their tenants, and rotate the secrets of these "
                "webhooks."
            )
