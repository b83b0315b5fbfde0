"""What a receipt of an erasure says: ids, codes, counts and sentences of ours, and moments; nothing of the person."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from memories import conf
from memories.models import PrivacyCase, ReturnPolicy, Tombstone

FORMAT = 1
OPENAI = "api.openai.com"
# How long a process keeps what it read of somebody for the next search, since the last one.
MEMORY_MINUTES = 10
CHANNELS = ("api", "admin", "command", "replay", "email", "phone", "letter")
# An id of more words than that is not looked for in what staff noted.
LONGEST_NAME_WORDS = 4
NAMED = "Recipients were told; the note about them named the person, and was deleted."
_MARKS = ".,;:!?()[]<>\"'"
RETURN = {
    ReturnPolicy.REFUSE: "Nobody is taken again under the erased ids.",
    ReturnPolicy.FLAG: "Whoever comes under an erased id is a new person, and staff are told so.",
    ReturnPolicy.ALLOW_NEW: "Whoever comes under an erased id is a new person.",
}
REMAINS = {
    "case": "This case without its free texts: it shows that the request was met, and when.",
    "tombstones": "A keyed hash of each erased id: with the hub's secret it recognises the id, and says nothing else.",
    "ledger": "A line in the erasure ledger with these hashes: with it the erasure is done again in a restored backup.",
    "audit": "Audit events: who did what to which internal id and when, without any content.",
    "request_keys": "Keyed hashes of keys that the application gave its requests, for a day: late doubles are refused.",
    "figures": "Sums and counts of an application's day, which are about nobody.",
}
MENTIONS = (
    "Memories of other people in which an erased id stands, or the very words that the person used; and names of "
    "tenants, keys, staff and the program that are the same. They are not the person's and stay; the controller may "
    "look at them."
)


def contents(
    case: PrivacyCase, *, now: datetime, models: Sequence[str] = (), called: Sequence[str] = ()
) -> dict[str, Any]:
    """The receipt of a case whose verification has found nothing, as of `now`, when it is completed.

    `models`: names of the language models that were asked about what the person said; `called`: the person's own
    names, folded, for it to name nobody.
    """
    return {
        "format": FORMAT,
        "case": str(case.pk),
        "type": case.type,
        "tenant": {"id": str(case.tenant_id), "slug": case.tenant.slug},
        "moments": _moments(case, now),
        "asked_by": case.asked_by,
        "channel": case.channel if case.channel in CHANNELS else "",
        "identity": case.verified_how,
        "acted": _acted(case),
        "erased": {store: count for store, count in sorted(case.counts.items()) if isinstance(count, int)},
        "verified": _verified(case),
        "return": {"policy": case.policy, "says": RETURN[ReturnPolicy(case.policy)]},
        "not_covered": not_covered(models, now),
        "told": _recipients(case, called),
        "remains": [{"what": what, "says": says} for what, says in REMAINS.items()],
    }


def not_covered(models: Sequence[str], now: datetime) -> list[dict[str, str]]:
    """What the hub cannot reach, or not yet: `until` is a date, or a sentence when there is none."""
    return [
        _backups(now),
        _tables(),
        {
            "what": "changes",
            "until": "Until PostgreSQL reuses these files, and until archived ones are deleted.",
            "says": "PostgreSQL's log of changes (WAL) and its archives hold what was written lately.",
        },
        {
            "what": "server_log",
            "until": "Until your server's logs are deleted.",
            "says": "The hub's statements carry no values; a server that logs failing rows may have logged some.",
        },
        {
            "what": "process_memory",
            "until": f"{MEMORY_MINUTES} minutes after the last search; vectors of recent questions until a restart.",
            "says": "Processes keep in their memory what they read for searches; nobody is told of it any more.",
        },
        *_providers(),
        *_models(models),
        {
            "what": "copies",
            "until": "Until their holders delete them.",
            "says": "Exports that were downloaded, and what applications received from the hub, are theirs.",
        },
    ]


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
        # By the database's clock it began; who ran it may have come with an older time of their own.
        "completed": max(now, case.started_at or now),
        "due": case.due_at,
    }
    return {name: _told_moment(moment) if moment else "" for name, moment in named.items()}


def _told_moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _acted(case: PrivacyCase) -> dict[str, dict[str, str]]:
    """Step → what kind of actor did it, and the id of their account or key."""
    return {
        "opened": {"kind": case.opened_kind, "id": case.opened_by},
        "verified": {"kind": case.verified_kind, "id": case.verified_by},
        "approved": {"kind": case.approved_kind, "id": case.approved_by},
    }


def _verified(case: PrivacyCase) -> dict[str, Any]:
    findings = case.findings
    found = {name: findings.get(name, 0) for name in ("tables", "rows", "bytes")}
    hits = sum(findings.get("hits", {}).values())
    told = {name: findings.get(name, {}) for name in ("skipped", "mentions")}
    return {**found, "hits": hits, **told, "mentions_say": MENTIONS}


def _recipients(case: PrivacyCase, called: Sequence[str]) -> str:
    """Who was told, as staff noted it; nothing of a note in which an erased id or the person's name stands."""
    buried = {bytes(one) for one in Tombstone.objects.filter(case_uuid=case.pk).values_list("digest", flat=True)}
    buried.add(bytes(case.subject))
    words = [word.strip(_MARKS) for word in case.told.split()]
    spans = (
        " ".join(words[start : start + length])
        for length in range(1, LONGEST_NAME_WORDS + 1)
        for start in range(len(words))
    )
    named = any(conf.digest_of_person(case.tenant_id, span) in buried for span in spans)
    return NAMED if named or _names(case.told, called) else case.told


def _names(text: str, called: Sequence[str]) -> bool:
    """Whether one of these names stands there as a word; Chinese leaves no space around what it names."""
    said = " ".join(text.casefold().split())
    return any(re.search(rf"(?<![0-9a-z]){re.escape(' '.join(name.split()))}(?![0-9a-z])", said) for name in called)


def _backups(now: datetime) -> dict[str, str]:
    days = settings.MEMORYHUB_BACKUP_DAYS
    until = (now + timedelta(days=days)).date().isoformat() if days else "Until your backups are deleted."
    return {
        "what": "backups",
        "until": until,
        "says": "Backups of the database from before hold the person. Whoever restores one has to replay the erasures.",
    }


def _tables() -> dict[str, str]:
    window = settings.MEMORYHUB_REWRITE_WINDOW
    said = f"Until they are rewritten, in one of the next nights between {window} UTC."
    return {
        "what": "tables",
        "until": said if window else "Until PostgreSQL writes over these places: no rewrite is set up.",
        "says": "Deleted rows are told to nobody, but their bytes stay in the database's files for a while.",
    }


def _providers() -> list[dict[str, str]]:
    """The endpoints in force that were sent texts, by their hosts."""
    llm, embeddings, reranking = conf.llm(), conf.embeddings(), conf.reranking()
    hosts = {
        "model_provider": (llm.base_url or OPENAI) if llm.mode == "openai" else "",
        "embedding_provider": (embeddings.base_url or OPENAI) if embeddings.mode == conf.EMBEDDINGS_OPENAI else "",
        "rerank_provider": reranking.url if reranking.path else "",
    }
    return [
        {
            "what": what,
            "until": "Until the provider deletes them.",
            "says": f"Texts were sent to {_host(address)}, which may keep logs of its own.",
        }
        for what, address in hosts.items()
        if address
    ]


def _models(names: Sequence[str]) -> list[dict[str, str]]:
    """Wherever they ran: no setting may name it any more."""
    if not names:
        return []
    says = f"Texts were sent to these language models: {', '.join(names)}. Whoever ran them may keep logs of their own."
    return [{"what": "models", "until": "Until whoever ran them deletes them.", "says": says}]


def _host(address: str) -> str:
    """Without a path, which may hold a key."""
    return urlsplit(address).hostname or address if "//" in address else address
