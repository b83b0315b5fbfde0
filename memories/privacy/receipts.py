"""Receipts: what an erasure did, signed by the hub, for somebody who was not there.

A receipt holds ids, codes, counts, moments and sentences of ours, and nothing about the person. The signature is
Ed25519 (RFC 8032) over its canonical JSON. The key is derived from the pepper: a hub with the same pepper can check the
signature, and everybody else can do so with the public key.
"""

import json
import re
import uuid
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.translation import gettext_noop as _
from django.utils.translation import override

from memories import conf, private_files
from memories.models import PrivacyCase, ReturnPolicy, Tombstone
from memories.privacy.receipt_page import ASKED_MODELS, FORGOTTEN, REWRITTEN, SENT, ReceiptPage
from memories.privacy.searching import search_terms
from memories.privacy.searching.search_terms import SearchTerms
from memories.privacy.trail.second_person import Tie, ties_of
from memories.queue import own_models

FOLDER = "receipts"
FORMAT = 1
OPENAI = "api.openai.com"
# A process keeps what it read of a person for so long after their last search.
MEMORY_MINUTES = 10
CHANNELS = ("api", "admin", "command", "replay", "email", "phone", "letter")
# An id of more words than that is not looked for in the note on recipients.
LONGEST_NAME_WORDS = 4
NAMED = _("Recipients were told; the note about them named the person, and was deleted.")
_MARKS = ".,;:!?()[]<>\"'"
RETURN = {
    ReturnPolicy.REFUSE: _("Nobody is taken again under the erased ids."),
    ReturnPolicy.FLAG: _("Whoever comes under an erased id is a new person, and staff are told so."),
    ReturnPolicy.ALLOW_NEW: _("Whoever comes under an erased id is a new person."),
}
REMAINS = {
    "case": _("This case without its free texts: it shows that the request was met, and when."),
    "tombstones": _(
        "A keyed hash of each erased id: with the hub's secret it recognises the id, and says nothing else."
    ),
    "ledger": _(
        "A line in the erasure ledger with these hashes: with it the erasure is done again in a restored backup."
    ),
    "audit": _("Audit events: who did what to which internal id and when, without any content."),
    "request_keys": _(
        "Keyed hashes of keys that the application gave its requests, for a day: late doubles are refused."
    ),
    "figures": _("Sums and counts of an application's day, which are about nobody."),
}
MENTIONS = _(
    "Memories of other people in which an erased id stands, or the very words that the person used; and names of "
    "tenants, keys, staff and the program that are the same. They are not the person's and stay; the controller may "
    "look at them."
)


def issue(case: PrivacyCase, *, now: datetime) -> None:
    """Give the case, completed at `now`, its receipt and signature; the caller saves them."""
    terms = search_terms.opened(case) or SearchTerms()
    case.receipt = contents(case, models=terms.models, called=terms.called, now=now)
    case.signature = b64encode(_private_key().sign(canonical(case.receipt))).decode()


def canonical(receipt: dict[str, Any]) -> bytes:
    """The bytes that are signed: JSON with sorted keys, without spaces, in UTF-8."""
    return json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def verify(receipt: dict[str, Any], signature: str, *, key: str = "") -> bool:
    """Whether the hub with this public key, by default this hub, signed the receipt as it is.

    Errors: ValueError when `key` is not a key.
    """
    public = Ed25519PublicKey.from_public_bytes(b64decode(key or public_key(), validate=True))
    try:
        public.verify(b64decode(signature, validate=True), canonical(receipt))
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key() -> str:
    """The public key of this hub's receipts: 32 bytes in base64."""
    return b64encode(_private_key().public_key().public_bytes_raw()).decode()


def _private_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(conf.digest("receipt"))


def document(case: PrivacyCase) -> bytes:
    """The receipt as the file that is given out and checked."""
    content = {"receipt": case.receipt, "signature": case.signature, "public_key": public_key()}
    return json.dumps(content, ensure_ascii=False, indent=2).encode() + b"\n"


def page(case: PrivacyCase) -> str:
    """The receipt as a page to read and print, in English."""
    with override("en"):
        content = ReceiptPage.of(case.receipt, signature=case.signature, public_key=public_key())
        return render_to_string("memories/receipt.html", {"page": content})


def write_files(case: PrivacyCase) -> Path:
    """Write document and page into the folder of receipts, readable by the owner alone; the path of the document."""
    folder = Path(settings.HOME) / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_files.write(folder / f"{case.pk}.html", page(case).encode())
    path = folder / f"{case.pk}.json"
    private_files.write(path, document(case))
    return path


def contents(
    case: PrivacyCase, *, now: datetime, models: Sequence[str] = (), called: Sequence[str] = ()
) -> dict[str, Any]:
    """The receipt of a case whose verification has found nothing, as of `now`, when it is completed.

    `models`: names of the language models that received the person's texts; `called`: the person's own names, folded,
    so that the receipt names nobody.
    """
    findings = case.findings
    with override("en"):
        two_people = [{"what": tie, "says": str(Tie(tie).label)} for tie in ties_of(case)]
    return {
        "format": FORMAT,
        "case": str(case.pk),
        "type": case.type,
        "tenant": {"id": str(case.tenant_id), "slug": case.tenant.slug},
        "moments": _moments(case, now),
        "asked_by": case.asked_by,
        "channel": case.channel if case.channel in CHANNELS else "",
        "identity": case.verified_how,
        "acted": {
            "opened": {"kind": case.opened_kind, "id": case.opened_by},
            "verified": {"kind": case.verified_kind, "id": case.verified_by},
            "approved": {"kind": case.approved_kind, "id": case.approved_by},
        },
        "two_people": two_people,
        "erased": {store: count for store, count in sorted(case.counts.items()) if isinstance(count, int)},
        "verified": {
            **{name: findings.get(name, 0) for name in ("tables", "rows", "bytes")},
            "hits": sum(findings.get("hits", {}).values()),
            **{name: findings.get(name, {}) for name in ("skipped", "mentions")},
            "mentions_say": MENTIONS,
        },
        "return": {"policy": case.policy, "says": RETURN[ReturnPolicy(case.policy)]},
        "not_covered": not_covered(models, now, case.tenant_id),
        "told": _recipients(case, called),
        "remains": [{"what": what, "says": says} for what, says in REMAINS.items()],
    }


def _moments(case: PrivacyCase, now: datetime) -> dict[str, str]:
    """Name → moment in UTC, in the order of the work; "" for what did not happen."""
    named = {
        "received": case.received_at,
        "opened": case.created_at,
        "verified": case.verified_at,
        "scoped": case.scoped_at,
        "extended": case.extended_at,
        "approved": case.approved_at,
        "started": case.started_at,
        # The database's clock says when it began; the clock of the process may be behind.
        "completed": max(now, case.started_at or now),
        "due": case.due_at,
    }
    return {
        name: moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if moment else ""
        for name, moment in named.items()
    }


def _recipients(case: PrivacyCase, called: Sequence[str]) -> str:
    """The note of staff on who was told; not a note that holds an erased id or the person's name."""
    erased = {bytes(one) for one in Tombstone.objects.filter(case_uuid=case.pk).values_list("digest", flat=True)}
    erased.add(bytes(case.subject))
    words = [word.strip(_MARKS) for word in case.told.split()]
    spans = (
        " ".join(words[start : start + length])
        for length in range(1, LONGEST_NAME_WORDS + 1)
        for start in range(len(words))
    )
    has_id = any(conf.digest_of_person(case.tenant_id, span) in erased for span in spans)
    text = " ".join(case.told.casefold().split())
    # As a word of its own; Chinese leaves no space around a name.
    names = (re.escape(" ".join(name.split())) for name in called)
    has_name = any(re.search(rf"(?<![0-9a-z]){name}(?![0-9a-z])", text) for name in names)
    return NAMED if has_id or has_name else case.told


def not_covered(models: Sequence[str], now: datetime, tenant_id: uuid.UUID) -> list[dict[str, str]]:
    """What the hub cannot reach, or not yet: `until` is a date, or a sentence when there is none."""
    days, window = settings.MEMORYHUB_BACKUP_DAYS, settings.MEMORYHUB_REWRITE_WINDOW
    return [
        {
            "what": "backups",
            "until": (now + timedelta(days=days)).date().isoformat() if days else _("Until your backups are deleted."),
            "says": _(
                "Backups of the database from before hold the person. Whoever restores one has to replay the erasures."
            ),
        },
        {
            "what": "tables",
            "until": REWRITTEN % {"window": window}
            if window
            else _("Until PostgreSQL writes over these places: no rewrite is set up."),
            "says": _("Deleted rows are told to nobody, but their bytes stay in the database's files for a while."),
        },
        {
            "what": "changes",
            "until": _("Until PostgreSQL reuses these files, and until archived ones are deleted."),
            "says": _("PostgreSQL's log of changes (WAL) and its archives hold what was written lately."),
        },
        {
            "what": "server_log",
            "until": _("Until your server's logs are deleted."),
            "says": _("The hub's statements carry no values; a server that logs failing rows may have logged some."),
        },
        {
            "what": "process_memory",
            "until": FORGOTTEN % {"minutes": MEMORY_MINUTES},
            "says": _("Processes keep in their memory what they read for searches; nobody is told of it any more."),
        },
        *_providers(tenant_id),
        *_models(models),
        {
            "what": "copies",
            "until": _("Until their holders delete them."),
            "says": _("Exports that were downloaded, and what applications received from the hub, are theirs."),
        },
    ]


def _providers(tenant_id: uuid.UUID) -> list[dict[str, str]]:
    """The configured endpoints that received texts, by their hosts."""
    llm = own_models.config_of(tenant_id)
    embeddings, reranking = conf.embeddings(), conf.reranking()
    addresses = {
        "model_provider": (llm.base_url or OPENAI) if llm.mode == "openai" else "",
        "embedding_provider": (embeddings.base_url or OPENAI) if embeddings.mode == conf.EMBEDDINGS_OPENAI else "",
        "rerank_provider": reranking.url if reranking.path else "",
    }
    return [
        {
            "what": what,
            "until": _("Until the provider deletes them."),
            "says": SENT % {"host": _host(address)},
        }
        for what, address in addresses.items()
        if address
    ]


def _host(address: str) -> str:
    """Without a path, which may hold a key."""
    return urlsplit(address).hostname or address if "//" in address else address


def _models(names: Sequence[str]) -> list[dict[str, str]]:
    """Also of models that no setting names any more."""
    if not names:
        return []
    says = ASKED_MODELS % {"names": ", ".join(names)}
    return [{"what": "models", "until": _("Until whoever ran them deletes them."), "says": says}]
