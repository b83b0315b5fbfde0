"""The newest seal of each chain, noted in a file apart from the database: a tail that was cut off shows there.

`audit-heads.json` is beside the ledger of erasures. When it is lost, the next seals write it again. A note that the
database contradicts is never overwritten, so the contradiction can be seen until somebody deletes the file.
"""

import json
import logging
import uuid
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from memories import private_files
from memories.models import AuditSeal
from memories.privacy.trail import chain

# Of the chain without a tenant.
NOBODY = "-"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Head:
    number: int
    digest: str


def place() -> Path:
    return Path(settings.MEMORYHUB_ERASURE_LEDGER).with_name("audit-heads.json")


def noted() -> dict[str, Head]:
    """The noted heads, by the tenant of the chain; {} without a file.

    Errors: ValueError, when the file is not the hub's.
    """
    try:
        found = json.loads(place().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    try:
        return {key: Head(int(number), bytes.fromhex(digest).hex()) for key, (number, digest) in found.items()}
    except (AttributeError, TypeError) as error:
        raise ValueError from error


def key_of(tenant_uuid: uuid.UUID | None) -> str:
    return str(tenant_uuid) if tenant_uuid else NOBODY


def is_in_chain(key: str, head: Head) -> bool:
    """Whether the database has the seal that was noted."""
    tenant_uuid = None if key == NOBODY else uuid.UUID(key)
    return bool(chain.of(tenant_uuid).filter(number=head.number, digest=bytes.fromhex(head.digest)).exists())


def note(seals: list[AuditSeal]) -> None:
    """Note these as the newest of their chains. A folder that cannot be written does not stop the sealing."""
    try:
        heads = noted()
        for seal in seals:
            key = key_of(seal.tenant_uuid)
            if key not in heads or (heads[key].number < seal.number and is_in_chain(key, heads[key])):
                heads[key] = Head(seal.number, bytes(seal.digest).hex())
        text = json.dumps({key: [head.number, head.digest] for key, head in sorted(heads.items())}, indent=1)
        private_files.write(place(), text.encode())
    except (OSError, ValueError) as error:
        logger.warning("The newest seals of the audit trail could not be noted: %s", type(error).__name__)
