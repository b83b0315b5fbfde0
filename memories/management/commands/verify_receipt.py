"""`manage.py verify_receipt FILE`: checks that a receipt is as a hub issued it. Needs no database."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memories.privacy import receipts


class Command(BaseCommand):
    help = "Check the signature of a receipt, by this hub's own key or by --key; exit code 1 when it does not hold."
    requires_system_checks = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The JSON file of the receipt.")
        parser.add_argument("--key", default="", help="The public key of the hub that issued it, in base64.")

    def handle(self, *args: Any, **options: Any) -> None:
        receipt, signature = _read(options["file"])
        try:
            holds = receipts.verify(receipt, signature, key=options["key"])
        except ValueError as error:
            raise CommandError("--key: this is no public key.") from error
        if not holds:
            raise CommandError(
                "The receipt is not as it was issued, or another hub issued it: give its key with --key."
            )
        self.stdout.write(f"The receipt of case {receipt['case']} is as it was issued.")


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """The receipt and its signature, from a receipt file or from the API's answer. Errors: CommandError."""
    try:
        document = json.loads(path.read_bytes())
        receipt = dict(document["receipt"])
        signature = document["signature"] if "signature" in document else receipt.pop("signature")
        return receipt, str(signature)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError) as error:
        raise CommandError(f"{path} is not the JSON file of a receipt.") from error
