"""Reads the authors of turns that were stored before the hub asked (`manage.py read_authors`).

It has the texts of a session and the order of its turns: what their blocks and names tell, and which words of a model
or a tool come back later in role user. It never touches a turn that has an author.
"""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.db import transaction
from django.db.models import Min

from memories.capture import authors, seen_texts
from memories.capture.ingest import PostedMessage, attribute, speaker
from memories.db import tenancy
from memories.models import Author, FactEvidence, Role, Session, SessionQueue, Tenant, Turn, TurnVector
from memories.scoring import terms

# Turns of one transaction, whose session is locked as long.
SLICE = 500
_FIELDS = ["author", "own", "is_doubtful", "terms"]


@dataclass
class Reread:
    """What was read: turns by author, those with parts that are not the person's, and facts that rest on no word of
    the person's, by id."""

    authors: Counter[str] = field(default_factory=Counter)
    mixed: int = 0
    facts: set[uuid.UUID] = field(default_factory=set)


def reread(tenant: Tenant, *, apply: bool) -> Reread:
    """Read the user's turns of the tenant that have no author; `apply` writes what was found.

    Some turns of a session at a time, in a transaction of their own: it can be stopped, and goes on when it is called
    again.
    """
    done = Reread()
    with tenancy.of_tenant(tenant.pk):
        unread = Turn.objects.filter(tenant=tenant, role=Role.USER, author="").values("session")
        for pk in list(
            Session.objects.filter(tenant=tenant, pk__in=unread).order_by("pk").values_list("pk", flat=True)
        ):
            reading = _Reading()
            while _reread_slice(pk, reading, done, apply=apply):
                pass
            done.facts |= reading.resting_on_others()
    return done


@transaction.atomic
def _reread_slice(session_id: uuid.UUID, reading: "_Reading", done: Reread, *, apply: bool) -> bool:
    """Read the next turns of the session; whether there were any."""
    # In the order of everybody else: ingest locks the queue before the session.
    queues = SessionQueue.objects.select_for_update(of=("self",)).filter(pk=session_id)
    if apply and not queues.first():
        return False
    session = Session.objects.select_for_update(of=("self",)).select_related("end_user").filter(pk=session_id).first()
    turns = list(Turn.objects.filter(session=session_id).after(reading.number)[:SLICE])
    if session is None or not turns:
        return False
    changed = []
    for turn in reading.read(session, turns):
        done.authors[turn.author] += 1
        done.mixed += turn.own is not None
        if not turn.is_said or turn.own is not None or turn.is_doubtful:
            changed.append(turn)
        elif apply:
            Turn.objects.filter(pk=turn.pk).update(author=turn.author)
    reading.note_evidence([turn.pk for turn in changed if not turn.is_said])
    if apply and changed:
        _write(session, changed)
    return True


class _Reading:
    """What is known of a session up to a number: who said which sentence, the person's name, and which facts rest on
    turns that are not the person's, with these turns."""

    def __init__(self) -> None:
        self.number = 0
        self._own_name: str | None = None
        self._passed: dict[bytes, seen_texts.Source] = {}
        self._cited: dict[uuid.UUID, set[uuid.UUID]] = {}

    def read(self, session: Session, turns: Sequence[Turn]) -> Iterator[Turn]:
        """The user's turns among these, the next of the session, without an author, with what was found of them;
        nothing is written."""
        if self._own_name is None:
            named = Turn.objects.filter(session=session, role=Role.USER).exclude(name="")
            # A user's turns have a few names among them all.
            first = named.order_by().values("name").annotate(first=Min("number")).order_by("first")
            names = first.values_list("name", flat=True)
            self._own_name = speaker(names, user_id=session.end_user.external_id)
        for turn in turns:
            if turn.role == Role.USER and turn.author == "":
                _attribute(turn, self._own_name, self._passed)
                yield turn
            if turn.role != Role.USER or turn.is_said:
                source = seen_texts.Source(turn.pk, turn.known_author)
                for _, digest in seen_texts.sentences(turn.content):
                    self._passed.setdefault(digest, source)
            self.number = turn.number

    def note_evidence(self, foreign: Sequence[uuid.UUID]) -> None:
        for fact, turn in FactEvidence.objects.filter(turn__in=foreign).values_list("fact", "turn"):
            self._cited.setdefault(fact, set()).add(turn)

    def resting_on_others(self) -> set[uuid.UUID]:
        """Facts that rest on turns that are not the person's, and on nothing else."""
        others: set[uuid.UUID] = set().union(*self._cited.values())
        own = FactEvidence.objects.filter(fact__in=list(self._cited)).exclude(turn__in=others)
        return set(self._cited) - set(own.values_list("fact", flat=True))


def _attribute(turn: Turn, own_name: str, passed: Mapping[bytes, seen_texts.Source]) -> None:
    message = PostedMessage(turn.role, turn.content)
    if turn.name not in ("", own_name):
        message = replace(message, author=Author.OTHER)
    else:
        author, cut = authors.came_back(message, passed)
        message = replace(message, author=author, cut=cut)
    attribute(turn, message)


def _write(session: Session, turns: list[Turn]) -> None:
    """The embedder and indexes in processes go back to them."""
    for turn in turns:
        turn.terms = terms.pack(turn.own_text) if turn.is_searchable else None
    Turn.objects.bulk_update(turns, _FIELDS)
    TurnVector.objects.filter(turn__in=[turn.pk for turn in turns]).delete()
    session.redactions += 1
    session.embedded_number = min(session.embedded_number, turns[0].number - 1)
    session.save(update_fields=["redactions", "embedded_number"])
