"""Tells a conversation through the real pipeline, and looks at every triple afterwards.

The model is scripted. It takes what the person says for facts, names in it for relations, and says of each name that it
is the last one, so that facts with triples supersede one another. Of replies it does the same, which has to wait.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from html import unescape
from itertools import pairwise
from typing import Any

from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from evals.gossip import fact
from evals.talks import Talk
from memories import invariants
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.extraction import consolidation
from memories.graph import naming
from memories.llm import client
from memories.llm.answers import A, parse
from memories.llm.calls import Call, Completion
from memories.llm.prompts import memory_update
from memories.models import EndUser, ExtractionRun, Fact, FactEvidence, GraphTriple, SessionQueue, Status, Tenant

_TURN = re.compile(r'<turn n="(\d+)" role="(\w+)" at="([^"T]+)[^"]*">(.*?)</turn>')
# A capital letter inside of a sentence.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
_LONGEST = 300
_MOST_BATCHES = 100

Row = tuple[str, int, int, int, int, int, int, int, int, int]
_HEAD = (
    "conversation", "turns", "calls", "facts", "superseded", "waiting", "triples", "by the model", "ended", "left out"
)  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What came of a conversation, and what is wrong with it."""

    row: Row
    wrong: list[str] = field(default_factory=list)


def tenant() -> Tenant:
    """One that wants triples by the model."""
    return Tenant.objects.create(slug="relations", created_at=timezone.now(), numbers={"triples": True})


@contextmanager
def answering() -> Iterator[None]:
    """The scripted model answers meanwhile."""
    before = client.BACKENDS["scripted"]
    client.BACKENDS["scripted"] = f"{__name__}.complete"
    try:
        yield
    finally:
        client.BACKENDS["scripted"] = before


def complete(call: Call[A]) -> Completion[A]:
    """Of one request for facts what the turns in it say; of any other request nothing."""
    call.before_call()
    is_update = call.answer.name == memory_update.NAME
    text = json.dumps(_update(call.messages[-1]["content"])) if is_update else call.answer.empty
    return Completion(parse(text, call.answer), "relater", prompt_tokens=0, completion_tokens=0, calls=1)


def replay(tenant: Tenant, talk: Talk) -> EndUser:
    """Post the sessions in order, and extract each to its end."""
    for session in talk.sessions:
        messages = [
            PostedMessage(one["role"], one["content"], timestamp=datetime.fromisoformat(one["timestamp"]))
            for one in session.messages
        ]
        given: dict[str, Any] = {"user_id": talk.person, "session_id": session.name, "agent_id": "", "flush": True}
        stored = ingest.store_turns(tenant=tenant, messages=messages, **given).session
        if stored is None:
            raise AssertionError("nothing was stored")
        for _ in range(_MOST_BATCHES):
            if not SessionQueue.objects.filter(pk=stored, extracted_number__lt=len(messages)).exists():
                break
            consolidation.consolidate(session_id=stored.pk, now=timezone.now())
    return EndUser.objects.get(tenant=tenant, external_id=talk.person)


def look(person: EndUser, talk: Talk) -> Checked:
    """Count what came of it, and look at each triple."""
    facts, triples = Fact.objects.filter(end_user=person), GraphTriple.objects.filter(end_user=person)
    runs = ExtractionRun.objects.filter(end_user=person)
    left_out: Counter[str] = sum((Counter(run.refusals) for run in runs), Counter())
    row = (
        talk.person,
        talk.turns,
        sum(run.calls for run in runs),
        facts.count(),
        facts.filter(status=Status.SUPERSEDED).count(),
        facts.filter(status=Status.PENDING).count(),
        triples.count(),
        triples.filter(place__gt=0).count(),
        triples.exclude(valid_to=None).count(),
        sum(number for reason, number in left_out.items() if reason.endswith(("_triple", "_triples"))),
    )
    wrong = [*_unproven(triples), *_outliving(triples), *_unsound()]
    wrong += [f"run {run.pk} failed: {run.failure}" for run in runs if run.status != ExtractionRun.RunStatus.COMMITTED]
    return Checked(row, wrong)


def table(checked: list[Checked]) -> str:
    """The rows as Markdown."""
    lines = [_HEAD, ("---",) * len(_HEAD), *(one.row for one in checked)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def _unproven(triples: Any) -> Iterator[str]:
    """Triples whose fact cites no turn that is there, or none that has their names."""
    cited = FactEvidence.objects.filter(fact=OuterRef("fact"), turn__end_user=OuterRef("end_user"))
    for pk in triples.filter(~Exists(cited)).values_list("pk", flat=True):
        yield f"triple {pk} has no evidence"
    for one in triples.filter(place__gt=0).select_related("subject", "object"):
        turns = FactEvidence.objects.filter(fact=one.fact_id).values_list("turn__content", flat=True)
        stated = " ".join(text for text in turns if text).casefold()
        names = {one.subject.name, one.object.name} - {naming.SELF}
        if not all(name.casefold() in stated for name in names):
            yield f"triple {one.pk} names what its evidence does not"


def _outliving(triples: Any) -> Iterator[str]:
    """Triples that hold although their fact waits, is gone, or held until earlier."""
    ended = Q(fact__status=Status.SUPERSEDED) & (
        Q(valid_to=None) | Q(valid_to__gt=F("fact__valid_to"), valid_from__lt=F("valid_to"))
    )
    for pk in triples.filter(ended).values_list("pk", flat=True):
        yield f"triple {pk} outlives its fact"
    silent = ~Q(fact__status__in=[Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED])
    for pk in triples.filter(silent).values_list("pk", flat=True):
        yield f"triple {pk} is of a fact that nobody is told"


def _unsound() -> list[str]:
    return [f"{one.name} does not hold" for one in invariants.check() if "triple" in one.name or "graph" in one.name]


def _update(prompt: str) -> dict[str, Any]:
    stated: list[dict[str, Any]] = []
    for number, _, day, text in _TURN.findall(prompt):
        spoken, turn = unescape(text)[:_LONGEST], int(number)
        names = list(dict.fromkeys(_NAME.findall(spoken)))
        between = [_triple(*pair, day) for pair in pairwise(names)]
        if names:
            talks_of = [_triple("user", name, day, "talks_of") for name in names]
            stated.append(fact(spoken, [turn], quote=spoken, triples=[*talks_of, *between]))
            last = {"key": "last_named", "value": names[-1], "confidence": 0.96, "category": "context"}
            named_by = _triple(names[-1], "user", day, "named_by")
            stated.append(fact(f"Talked of {names[-1]} last", [turn], **last, triples=[named_by, *between]))
    return {"new_facts": stated}


def _triple(subject: str, object_: str, day: str, predicate: str = "named_with") -> dict[str, Any]:
    return {"subject": subject, "predicate": predicate, "object": object_, "valid_from": day, "valid_to": None}
