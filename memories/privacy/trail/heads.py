"""The newest seal of each chain, noted in a file apart from the database: a tail that was cut off shows there.

`audit-heads.json` lies beside the ledger of erasures. Lost, it is made anew with the next seals; a note that the
database contradicts is never written over, so the contradiction stays to be seen until somebody deletes the file.
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
    """What was noted, by the chain's tenant; {} without a file. Errors: ValueError, when it is none of ours."""
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


def stands(key: str, head: Head) -> bool:
    """Whether the database has the seal that was noted."""
    tenant_uuid = None if key == NOBODY else uuid.UUID(key)
    return bool(chain.of(tenant_uuid).filter(number=head.number, digest=bytes.fromhex(head.digest)).exists())


def note(seals: list[AuditSeal]) -> None:
    """Remember these as the newest of their chains. A folder that cannot be written to is no reason to seal nothing."""
    try:
        known = noted()
        for seal in seals:
            key = key_of(seal.tenant_uuid)
            if key not in known or (known[key].number < seal.number and stands(key, known[key])):
                known[key] = Head(seal.number, bytes(seal.digest).hex())
        _write(known)
    except (OSError, ValueError) as error:
        logger.warning("The newest seals of the audit trail could not be noted: %s", type(error).__name__)


def _write(heads: dict[str, Head]) -> None:
    text = json.dumps({key: [head.number, head.digest] for key, head in sorted(heads.items())}, indent=1)
    private_files.write(place(), text.encode())
