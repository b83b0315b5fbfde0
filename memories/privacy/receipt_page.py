"""The page of a receipt, in the language in force. The signed sentences that it shows are stored in English."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop, pgettext
from django.utils.translation import gettext_lazy as _

Words = Mapping[str, Promise]

MOMENTS: Words = {
    "received": _("The request was received"),
    "opened": _("The case was opened"),
    "verified": _("The identity of who asked was checked"),
    "scoped": _("The data was counted"),
    "extended": _("The time was extended"),
    "approved": _("The erasure was approved"),
    "started": _("The erasure began"),
    "completed": _("The case was completed"),
    "due": _("It was due"),
}
ASKED: Words = {
    "subject": _("the person"),
    "representative": _("a representative of the person"),
    "guardian": _("a parent or guardian of the person"),
    "authority": _("an authority"),
    "controller": _("the controller"),
}
IDENTITY: Words = {
    "signed_in": _("They were signed in to the application."),
    "call_back": _("They were called or written back to at a known address."),
    "in_person": _("They were met in person."),
    "document": _("A document was seen; no copy of it is kept."),
    "mandate": _("The mandate of who acts for them was seen."),
    "shell": _("It was answered for by who has access to the server."),
}
STORES: Words = {
    "files": _("Files"),
    "cache": _("Caches"),
    "sessions.Session": _("Operators' browser sessions"),
    "django_q.OrmQ": _("Queued work"),
    "django_q.Task": _("Results of finished work"),
    "admin.LogEntry": _("The admin's own log"),
    "axes.AccessAttempt": _("Failed sign-ins"),
    "memories.Change": _("Single changes that staff made"),
    "memories.ChangeSet": _("Changes that staff made"),
    "memories.DreamEdit": _("Edits that a model proposed to memory files"),
    "memories.DreamedEpisode": _("Which conversations a model read for memory files"),
    "memories.DiaryVector": _("Search index of diaries"),
    "memories.EpisodeVector": _("Search index of summaries of conversations"),
    "memories.ExtractionRun": _("Records of how conversations were read"),
    "memories.FactEvidence": _("Which messages facts rest on"),
    "memories.FactRefusal": _("Statements that are not to be learned again"),
    "memories.FactRelation": _("Links between facts"),
    "memories.FactRevision": _("Earlier versions of facts"),
    "memories.FactVector": _("Search index of facts"),
    "memories.FileVersion": _("Earlier versions of memory files"),
    "memories.IdempotencyRecord": _("Answers kept for requests that are sent again"),
    "memories.PrivacyExportPiece": _("Parts of export files"),
    "memories.ProfileRevision": _("Earlier versions of the profile"),
    "memories.SeenText": _("Fingerprints of texts that passed through the gateway"),
    "memories.SentBlock": _("Memory that was sent along with conversations"),
    "memories.SessionQueue": _("How far conversations were read"),
    "memories.StoreItemVector": _("Search index of stored items"),
    "memories.TurnVector": _("Search index of messages"),
    "memories.WebhookDelivery": _("Events for other systems"),
    "memories.WorkingMemory": _("Summaries of conversations under way"),
    "memories.Fact.allowed_users": _("Facts of others that list the end user as a reader"),
}
ACTORS: Words = {
    "operator": _("an operator, account"),
    "key": _("an application's key"),
    "command": _("a command on the server, without a second person"),
}
STEPS: Words = {"opened": _("Opened by"), "verified": _("Identity checked by"), "approved": _("Approved by")}
NOT_COVERED: Words = {
    "backups": _("Backups"),
    "tables": _("The database's files"),
    "changes": _("The database's log of changes"),
    "server_log": _("The database server's log"),
    "process_memory": _("The memory of running processes"),
    "model_provider": _("The provider of the language model"),
    "embedding_provider": _("The provider of embeddings"),
    "rerank_provider": _("The provider of reranking"),
    "models": _("Language models"),
    "copies": _("Copies that were given out"),
}
REMAINS: Words = {
    "case": _("This case"),
    "tombstones": _("Keyed hashes"),
    "ledger": _("The erasure ledger"),
    "audit": _("The audit trail"),
    "request_keys": _("Keys of requests"),
    "figures": _("Figures"),
}
CHECKED: Words = {
    "tables": _("Tables searched"),
    "rows": _("Rows searched"),
    "bytes": _("Bytes read"),
    "hits": _("Found"),
}

SEARCHED = _("Afterwards other code than the one that erased searched everything for what it had noted of the person.")
TIED = _("An erasure takes two people. Of the accounts of these two the hub knows:")
NOBODY = _("The person was gone before this case began, so there was nothing to search for.")

# Stored sentences with something in them, as memories/privacy/receipts.py makes them.
REWRITTEN = gettext_noop("Until they are rewritten, in one of the next nights between %(window)s UTC.")
FORGOTTEN = gettext_noop("%(minutes)s minutes after the last search; vectors of recent questions until a restart.")
SENT = gettext_noop("Texts were sent to %(host)s, which may keep logs of its own.")
ASKED_MODELS = gettext_noop(
    "Texts were sent to these language models: %(names)s. Whoever ran them may keep logs of their own."
)
TEMPLATES = (REWRITTEN, FORGOTTEN, ASKED_MODELS, SENT)

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
        erased = [(_store_name(store), _number(count)) for store, count in receipt["erased"].items() if count]
        not_covered = [
            (_word(NOT_COVERED, one["what"]), _text(one["says"]), _text(one["until"])) for one in receipt["not_covered"]
        ]
        remains = [(_word(REMAINS, one["what"]), _text(one["says"])) for one in receipt["remains"]]
        file = f"{receipt['case']}.json"
        how = gettext("The file %(file)s holds the same, signed. Check it with: %(command)s")
        how %= {"file": file, "command": f"manage.py verify_receipt {file} --key KEY"}
        keys = [(gettext("Signature"), signature), (gettext("Public key"), public_key)]
        # The trail calls what somebody did so, which is another word in Chinese.
        what = pgettext("of a receipt", "What")
        sections = [
            _course(receipt),
            ReceiptSection(gettext("What was erased"), [], (gettext("Kind of record"), gettext("Records")), erased),
            _search(receipt["verified"]),
            ReceiptSection(
                gettext("What is not covered, and until when"),
                [],
                (gettext("Where"), what, gettext("Until")),
                not_covered,
            ),
            ReceiptSection(gettext("What remains on purpose"), [], (what, gettext("Why")), remains),
            ReceiptSection(gettext("Who was told"), [_text(receipt["told"]) or gettext("No recipients were noted.")]),
            ReceiptSection(gettext("How to check it"), [how], ("", "Ed25519"), keys),
        ]
        return cls(gettext("Receipt of an erasure"), _summary(receipt), sections)


def _summary(receipt: Mapping[str, Any]) -> list[str]:
    tenant, completed = receipt["tenant"]["slug"], _moment(receipt["moments"]["completed"])
    count = sum(receipt["erased"].values())
    erased = gettext(
        "All that the application %(tenant)s kept of one person in its memory was erased: %(count)s records."
    )
    done = gettext("It was completed on %(when)s UTC, as case %(case)s.")
    return [
        erased % {"tenant": tenant, "count": _number(count)},
        done % {"when": completed, "case": receipt["case"]},
        _text(receipt["return"]["says"]),
        gettext("This receipt names nobody: whoever asked knows the number of the case."),
    ]


def _course(receipt: Mapping[str, Any]) -> ReceiptSection:
    moments, acted = receipt["moments"], receipt["acted"]
    # In the order of MOMENTS: the database keeps none.
    rows: list[Row] = [(str(says), _moment(moments[name])) for name, says in MOMENTS.items() if moments.get(name)]
    for step, title in STEPS.items():
        if step in acted:
            kind = acted[step]["kind"]
            rows.append((str(title), f"{_word(ACTORS, kind)} {acted[step]['id']}".strip()))
    asked = gettext("It was asked for by %(whom)s.") % {"whom": _word(ASKED, receipt["asked_by"])}
    identity = _word(IDENTITY, receipt["identity"])
    # Older receipts do not have it.
    ties = [_text(one["says"]) for one in receipt.get("two_people", [])]
    says = [asked, identity, *([str(TIED), *ties] if ties else [])]
    return ReceiptSection(gettext("What happened"), says, (gettext("Step"), gettext("When (UTC), or by whom")), rows)


def _moment(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z")


def _search(verified: Mapping[str, Any]) -> ReceiptSection:
    heading = gettext("What the search afterwards found")
    if not verified["tables"]:
        return ReceiptSection(heading, [str(NOBODY)])
    mentioned, left_out = gettext("Mentioned in %(place)s"), gettext("Not searched: %(place)s")
    rows = [(str(label), _number(verified[name])) for name, label in CHECKED.items()]
    rows += [(mentioned % {"place": _place(place)}, _number(count)) for place, count in verified["mentions"].items()]
    rows += [
        (left_out % {"place": _place(place)}, _text(reason)) for place, reason in verified.get("skipped", {}).items()
    ]
    says = [str(SEARCHED), *([_text(verified["mentions_say"])] if verified["mentions"] else [])]
    return ReceiptSection(heading, says, (gettext("Figure"), gettext("Count, or why not")), rows)


def _number(count: int) -> str:
    """With thousands separators: 12,345."""
    return f"{count:,}"


def _word(words: Words, code: str) -> str:
    return str(words.get(code, code))


def _text(text: str) -> str:
    """A stored English sentence in the language in force; one that nobody knows any more stays as it is."""
    for template in TEMPLATES:
        pattern = re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+?)", re.escape(template))
        if found := re.fullmatch(pattern, text, re.DOTALL):
            return gettext(template) % found.groupdict()
    return gettext(text) if text else ""


def _place(place: str) -> str:
    """The name of the store of a place, like memories.Turn.content, and its field."""
    store, field = ".".join(place.split(".")[:2]), ".".join(place.split(".")[2:])
    return f"{_store_name(store)} ({field})" if field else _store_name(store)


def _store_name(store: str) -> str:
    """The plural of a model's name; the label of a store that the hub does not have any more."""
    if store in STORES:
        return str(STORES[store])
    try:
        return str(capfirst(str(apps.get_model(store)._meta.verbose_name_plural)))
    except (LookupError, ValueError):
        return store
