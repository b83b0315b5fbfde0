"""Reads the authors of turns that were stored before the hub asked (`manage.py read_authors`).

It has the texts of a session and the order of its turns: what their blocks and names tell, and which words of a model
or a tool come back later in role user. It never touches a turn that has an author.
"""

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from django.db import transaction

from memories.capture import authors, seen_texts
from memories.capture.ingest import PostedMessage, attribute, speaker
from memories.db import tenancy
from memories.models import Author, FactEvidence, Role, Session, SessionQueue, Tenant, Turn, TurnVector
from memories.scoring import terms

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

    A session at a time, each in a transaction of its own: it can be stopped, and goes on when it is called again.
    """
    done = Reread()
    with tenancy.of_tenant(tenant.pk):
        unread = Turn.objects.filter(tenant=tenant, role=Role.USER, author="").values("session")
        for pk in list(
            Session.objects.filter(tenant=tenant, pk__in=unread).order_by("pk").values_list("pk", flat=True)
        ):
            with transaction.atomic():
                _reread_session(pk, done, apply=apply)
    return done


def _reread_session(session_id: uuid.UUID, done: Reread, *, apply: bool) -> None:
    # In the order of everybody else: ingest locks the queue before the session.
    queues = SessionQueue.objects.select_for_update(of=("self",)).filter(pk=session_id)
    if apply and not queues.first():
        return
    session = Session.objects.select_for_update(of=("self",)).select_related("end_user").filter(pk=session_id).first()
    if session is None:
        return
    changed = []
    for turn in _read(session):
        done.authors[turn.author] += 1
        done.mixed += turn.own is not None
        if not turn.is_said or turn.own is not None or turn.is_doubtful:
            changed.append(turn)
        elif apply:
            Turn.objects.filter(pk=turn.pk).update(author=turn.author)
    foreign = [turn.pk for turn in changed if not turn.is_said]
    rest = FactEvidence.objects.filter(turn__in=foreign).values("fact")
    own = FactEvidence.objects.filter(fact__in=rest).exclude(turn__in=foreign).values("fact")
    done.facts |= set(FactEvidence.objects.filter(fact__in=rest).exclude(fact__in=own).values_list("fact", flat=True))
    if apply and changed:
        _write(session, changed)


def _read(session: Session) -> Iterator[Turn]:
    """The user's turns without an author, with what was found of them; nothing is written."""
    turns = list(Turn.objects.filter(session=session).order_by("number"))
    names = [turn.name for turn in turns if turn.role == Role.USER]
    own_name = speaker(names, user_id=session.end_user.external_id)
    passed: dict[bytes, seen_texts.Source] = {}
    for turn in turns:
        if turn.role == Role.USER and turn.author == "":
            _attribute(turn, own_name, passed)
            yield turn
        if turn.role != Role.USER or turn.is_said:
            source = seen_texts.Source(turn.pk, turn.known_author)
            for _, digest in seen_texts.sentences(turn.content):
                passed.setdefault(digest, source)


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
