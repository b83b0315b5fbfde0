"""Receipts: what an erasure did, for somebody who was not there, signed by the hub.

The signature is Ed25519 (RFC 8032) over the receipt's canonical JSON; its key is derived from the pepper, so a hub with
the same pepper can check it, and everybody else with the public key.
"""

import json
from base64 import b64decode, b64encode
from datetime import datetime
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.template.loader import render_to_string

from memories import conf, private_files
from memories.models import PrivacyCase
from memories.privacy.receipt import receipt_contents, receipt_page
from memories.privacy.searching import needles
from memories.privacy.searching.needles import Needles

FOLDER = "receipts"


def issue(case: PrivacyCase, *, now: datetime) -> None:
    """Give the case, completed at `now`, its receipt and signature; whoever completes it saves them."""
    known = needles.opened(case) or Needles()
    case.receipt = receipt_contents.contents(case, models=known.models, called=known.called, now=now)
    case.signature = b64encode(_private_key().sign(canonical(case.receipt))).decode()


def canonical(receipt: dict[str, Any]) -> bytes:
    """The bytes that are signed: JSON with sorted keys, without spaces, in UTF-8."""
    return json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def verify(receipt: dict[str, Any], signature: str, *, key: str = "") -> bool:
    """Whether the hub with this public key, by default this hub, signed the receipt as it stands.

    Errors: ValueError when `key` is none.
    """
    public = Ed25519PublicKey.from_public_bytes(b64decode(key or public_key(), validate=True))
    try:
        public.verify(b64decode(signature, validate=True), canonical(receipt))
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key() -> str:
    """The key that receipts of this hub are checked with: 32 bytes in base64."""
    return b64encode(_private_key().public_key().public_bytes_raw()).decode()


def document(case: PrivacyCase) -> bytes:
    """The receipt as the file that is given out and checked."""
    told = {"receipt": case.receipt, "signature": case.signature, "public_key": public_key()}
    return json.dumps(told, ensure_ascii=False, indent=2).encode() + b"\n"


def page(case: PrivacyCase) -> str:
    """The receipt as a page to read and print, in English."""
    told = receipt_page.Page.of(case.receipt, signature=case.signature, public_key=public_key())
    return render_to_string("memories/receipt.html", {"page": told})


def write_files(case: PrivacyCase) -> Path:
    """Write both into the folder of receipts, readable by the owner alone; the path of the JSON file."""
    folder = Path(settings.HOME) / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_files.write(folder / f"{case.pk}.html", page(case).encode())
    path = folder / f"{case.pk}.json"
    private_files.write(path, document(case))
    return path


def _private_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(conf.digest("receipt"))
