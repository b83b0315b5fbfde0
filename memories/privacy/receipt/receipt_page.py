"""The words of a receipt's page. They are English in every language: the page is for whoever asked, not for staff."""

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
NOBODY = "The person was gone before this case began, so there was nothing to search for."

Row = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, sentences, and rows of a table below their heads."""

    heading: str
    says: Sequence[str] = ()
    heads: Row = ()
    rows: Sequence[Row] = ()


@dataclass(frozen=True)
class Page:
    title: str
    summary: Sequence[str]
    sections: Sequence[Section]

    @classmethod
    def of(cls, receipt: Mapping[str, Any], *, signature: str, public_key: str) -> "Page":
        """The page of a receipt; a code that it does not know stands for itself."""
        sections = [
            _course(receipt),
            _erased(receipt["erased"]),
            _search(receipt["verified"]),
            _not_covered(receipt["not_covered"]),
            _remains(receipt["remains"]),
            _told(receipt["told"]),
            _signature(receipt, signature, public_key),
        ]
        return cls("Receipt of an erasure", _summary(receipt), [one for one in sections if one])


def _summary(receipt: Mapping[str, Any]) -> list[str]:
    tenant, completed = receipt["tenant"]["slug"], _moment(receipt["moments"]["completed"])
    count = sum(receipt["erased"].values())
    return [
        f"All that the application {tenant} kept of one person in its memory was erased: {count} records.",
        f"It was completed on {completed} UTC, as case {receipt['case']}.",
        receipt["return"]["says"],
        "This receipt names nobody: whoever asked knows the number of the case.",
    ]


def _course(receipt: Mapping[str, Any]) -> Section:
    moments = receipt["moments"]
    # In our order: the database keeps none.
    told = [(says, _moment(moments[name])) for name, says in MOMENTS.items() if moments.get(name)]
    acted = [(says, _actor(receipt["acted"][step])) for step, says in STEPS.items() if step in receipt["acted"]]
    asked = f"It was asked for by {ASKED.get(receipt['asked_by'], receipt['asked_by'])}."
    identity = IDENTITY.get(receipt["identity"], receipt["identity"])
    return Section("What happened", [asked, identity], ("Step", "When (UTC), or by whom"), told + acted)


def _actor(who: Mapping[str, str]) -> str:
    return f"{ACTORS.get(who['kind'], who['kind'])} {who['id']}".strip()


def _moment(told: str) -> str:
    return told.replace("T", " ").removesuffix("Z")


def _erased(counts: Mapping[str, int]) -> Section:
    rows = [(_name(store), str(count)) for store, count in counts.items() if count]
    return Section("What was erased", [], ("Kind of record", "Records"), rows)


def _search(verified: Mapping[str, Any]) -> Section:
    rows = [(label, str(verified[name])) for name, label in CHECKED.items()]
    rows += [(f"Mentioned in {place}", str(count)) for place, count in verified["mentions"].items()]
    rows += [(f"Not searched: {place}", reason) for place, reason in verified.get("skipped", {}).items()]
    if not verified["tables"]:
        return Section("What the search afterwards found", [NOBODY])
    says = [SEARCHED, *([verified["mentions_say"]] if verified["mentions"] else [])]
    return Section("What the search afterwards found", says, ("Figure", "Count, or why not"), rows)


def _not_covered(entries: Sequence[Mapping[str, str]]) -> Section:
    rows = [(NOT_COVERED.get(one["what"], one["what"]), one["says"], one["until"]) for one in entries]
    return Section("What is not covered, and until when", [], ("Where", "What", "Until"), rows)


def _remains(entries: Sequence[Mapping[str, str]]) -> Section:
    rows = [(REMAINS.get(one["what"], one["what"]), one["says"]) for one in entries]
    return Section("What remains on purpose", [], ("What", "Why"), rows)


def _told(told: str) -> Section:
    return Section("Who was told", [told or "No recipients were noted."])


def _signature(receipt: Mapping[str, Any], signature: str, public_key: str) -> Section:
    file = f"{receipt['case']}.json"
    says = [f"The file {file} holds the same, signed. Check it with: manage.py verify_receipt {file} --key KEY"]
    return Section("How to check it", says, ("", "Ed25519"), [("Signature", signature), ("Public key", public_key)])


def _name(store: str) -> str:
    """What a store is called; a table that the hub does not have any more goes by its label."""
    try:
        with override("en"):
            return str(apps.get_model(store)._meta.verbose_name_plural).capitalize()
    except (LookupError, ValueError):
        return store
