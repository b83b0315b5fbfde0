"""The page of a receipt. It is English in every language: it is for the requester, not for staff."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.utils.translation import override

MOMENTS = {
    "received": "The request was received",
    "opened": "The case was opened",
    "verified": "The identity of who asked was checked",
    "scoped": "The data was counted",
    "extended": "The time was extended",
    "approved": "The erasure was approved",
    "started": "The erasure began",
    "completed": "The case was completed",
    "due": "It was due",
}
ASKED = {
    "subject": "the person",
    "representative": "a representative of the person",
    "guardian": "a parent or guardian of the person",
    "authority": "an authority",
    "controller": "the controller",
}
IDENTITY = {
    "signed_in": "They were signed in to the application.",
    "call_back": "They were called or written back to at a known address.",
    "in_person": "They were met in person.",
    "document": "A document was seen; no copy of it is kept.",
    "mandate": "The mandate of who acts for them was seen.",
    "shell": "It was answered for by who has access to the server.",
}
ACTORS = {
    "operator": "an operator, account",
    "key": "an application's key",
    "command": "a command on the server, without a second person",
}
STEPS = {"opened": "Opened by", "verified": "Identity checked by", "approved": "Approved by"}
NOT_COVERED = {
    "backups": "Backups",
    "tables": "The database's files",
    "changes": "The database's log of changes",
    "server_log": "The database server's log",
    "process_memory": "The memory of running processes",
    "model_provider": "The provider of the language model",
    "embedding_provider": "The provider of embeddings",
    "rerank_provider": "The provider of reranking",
    "models": "Language models",
    "copies": "Copies that were given out",
}
REMAINS = {
    "case": "This case",
    "tombstones": "Keyed hashes",
    "ledger": "The erasure ledger",
    "audit": "The audit trail",
    "request_keys": "Keys of requests",
    "figures": "Figures",
}
CHECKED = {"tables": "Tables searched", "rows": "Rows searched", "bytes": "Bytes read", "hits": "Found"}

SEARCHED = "Afterwards other code than the one that erased searched everything for what it had noted of the person."
TIED = "An erasure takes two people. Of the accounts of these two the hub knows:"
NOBODY = "The person was gone before this case began, so there was nothing to search for."

Row = tuple[str, ...]


@dataclass(frozen=True)
class ReceiptSection:
    """A part of the page: a heading, sentences, and a table."""

    heading: str
    says: Sequence[str] = ()
    heads: Row = ()
    rows: Sequence[Row] = ()


@dataclass(frozen=True)
class ReceiptPage:
    title: str
    summary: Sequence[str]
    sections: Sequence[ReceiptSection]

    @classmethod
    def of(cls, receipt: Mapping[str, Any], *, signature: str, public_key: str) -> "ReceiptPage":
        """The page of a receipt; a code without words here is shown itself."""
        erased = [(_store_name(store), str(count)) for store, count in receipt["erased"].items() if count]
        not_covered = [
            (NOT_COVERED.get(one["what"], one["what"]), one["says"], one["until"]) for one in receipt["not_covered"]
        ]
        remains = [(REMAINS.get(one["what"], one["what"]), one["says"]) for one in receipt["remains"]]
        file = f"{receipt['case']}.json"
        how = f"The file {file} holds the same, signed. Check it with: manage.py verify_receipt {file} --key KEY"
        keys = [("Signature", signature), ("Public key", public_key)]
        sections = [
            _course(receipt),
            ReceiptSection("What was erased", [], ("Kind of record", "Records"), erased),
            _search(receipt["verified"]),
            ReceiptSection("What is not covered, and until when", [], ("Where", "What", "Until"), not_covered),
            ReceiptSection("What remains on purpose", [], ("What", "Why"), remains),
            ReceiptSection("Who was told", [receipt["told"] or "No recipients were noted."]),
            ReceiptSection("How to check it", [how], ("", "Ed25519"), keys),
        ]
        return cls("Receipt of an erasure", _summary(receipt), sections)


def _summary(receipt: Mapping[str, Any]) -> list[str]:
    tenant, completed = receipt["tenant"]["slug"], _moment(receipt["moments"]["completed"])
    count = sum(receipt["erased"].values())
    return [
        f"All that the application {tenant} kept of one person in its memory was erased: {count} records.",
        f"It was completed on {completed} UTC, as case {receipt['case']}.",
        receipt["return"]["says"],
        "This receipt names nobody: whoever asked knows the number of the case.",
    ]


def _course(receipt: Mapping[str, Any]) -> ReceiptSection:
    moments, acted = receipt["moments"], receipt["acted"]
    # In the order of MOMENTS: the database keeps none.
    rows: list[Row] = [(says, _moment(moments[name])) for name, says in MOMENTS.items() if moments.get(name)]
    for step, title in STEPS.items():
        if step in acted:
            kind = acted[step]["kind"]
            rows.append((title, f"{ACTORS.get(kind, kind)} {acted[step]['id']}".strip()))
    asked = f"It was asked for by {ASKED.get(receipt['asked_by'], receipt['asked_by'])}."
    identity = IDENTITY.get(receipt["identity"], receipt["identity"])
    # Older receipts do not have it.
    ties = [one["says"] for one in receipt.get("two_people", [])]
    says = [asked, identity, *([TIED, *ties] if ties else [])]
    return ReceiptSection("What happened", says, ("Step", "When (UTC), or by whom"), rows)


def _moment(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z")


def _search(verified: Mapping[str, Any]) -> ReceiptSection:
    heading = "What the search afterwards found"
    if not verified["tables"]:
        return ReceiptSection(heading, [NOBODY])
    rows = [(label, str(verified[name])) for name, label in CHECKED.items()]
    rows += [(f"Mentioned in {place}", str(count)) for place, count in verified["mentions"].items()]
    rows += [(f"Not searched: {place}", reason) for place, reason in verified.get("skipped", {}).items()]
    says = [SEARCHED, *([verified["mentions_say"]] if verified["mentions"] else [])]
    return ReceiptSection(heading, says, ("Figure", "Count, or why not"), rows)


def _store_name(store: str) -> str:
    """The plural of a model's name; the label of a store that the hub does not have any more."""
    try:
        with override("en"):
            return str(apps.get_model(store)._meta.verbose_name_plural).capitalize()
    except (LookupError, ValueError):
        return store
