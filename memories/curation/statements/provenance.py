"""Provenance of a key's statement: turns of the person, and their other facts, by our ids.

An id of somebody else's row, or of one that the key may not see, is answered like one that never existed.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import connection
from django.utils.translation import gettext as _

from memories.exceptions import Fault, InvalidInput
from memories.facts.candidate import Citation
from memories.models import Author, EndUser, Fact, FactEvidence, FactQuerySet, FactRelation, Role, Trust, Turn
from memories.text import echo
from memories.text.transcript import TranscriptTurn, is_hidden

_TRUST: Mapping[str, Trust] = {
    Role.USER: Trust.USER,
    Role.TOOL: Trust.TOOL,
    Author.APPLICATION: Trust.TOOL,
    Author.OTHER: Trust.TOOL,
}
# By hand: the lock that the foreign keys of evidence take at the commit, for which Django has no API.
_LOCK_SESSIONS = """
    SELECT s.id FROM memories_session s
    WHERE s.tenant_id = %(tenant)s AND s.id IN (
        SELECT t.session_id FROM memories_turn t
        WHERE t.id = ANY(%(turns)s) AND t.tenant_id = %(tenant)s AND t.end_user_id = %(person)s
    )
    ORDER BY s.id FOR KEY SHARE OF s
"""


@dataclass(frozen=True)
class RelationDraft:
    """How a statement is related to another fact of the person: a RelationType, never `supersedes`."""

    type: str
    target_id: uuid.UUID


@dataclass(frozen=True)
class Provenance:
    """Where a statement is from: its quote, its Source (empty: by its trust), ids of turns of the person, relations to
    their other facts, and since when it is true (None: since now)."""

    raw: str = ""
    source: str = ""
    evidence: Sequence[uuid.UUID] = ()
    relations: Sequence[RelationDraft] = ()
    valid_from: datetime | None = None


NO_PROVENANCE = Provenance()


@dataclass(frozen=True)
class ResolvedEvidence:
    """The cited turns, the one of them that contains the quote, and the related facts by type."""

    turns: Sequence[Turn] = ()
    quoted: Turn | None = None
    related: Sequence[tuple[str, Fact]] = field(default_factory=list)

    @property
    def trusts(self) -> list[Trust]:
        """Of each cited turn; what the application hid from its user does not count as the user's."""
        return [
            Trust.ASSISTANT if is_hidden(turn) else _TRUST.get(turn.speaker, Trust.ASSISTANT) for turn in self.turns
        ]

    def citations(self, *, quote: str) -> list[Citation]:
        """The cited turns as a statement rests on them; `quote` is at its turn."""
        return [
            Citation(turn.session_id, turn.number, turn.pk, quote if turn == self.quoted else "") for turn in self.turns
        ]

    def store(self, fact: Fact, *, now: datetime, quote: str) -> None:
        """Write them as the fact's evidence and relations, but for those that it has; `quote` is at its turn."""
        evidence = [
            FactEvidence(tenant_id=fact.tenant_id, fact=fact, created_at=now, **one.place)
            for one in self.citations(quote=quote)
        ]
        related = [(kind, target) for kind, target in self.related if target != fact]
        relations = [
            FactRelation(tenant_id=fact.tenant_id, fact=fact, target=target, type=kind, created_at=now)
            for kind, target in related
        ]
        FactEvidence.objects.bulk_create(evidence, ignore_conflicts=True)
        FactRelation.objects.bulk_create(relations, ignore_conflicts=True)

    def restate(self, fact: Fact, *, now: datetime, relates: bool) -> None:
        """The same for a fact that exists; a turn that contains its new quote gets it. `relates`: it states these
        relations, and no others any more."""
        if relates:
            kept = {(kind, target.pk) for kind, target in self.related}
            stated = FactRelation.objects.filter(fact=fact)
            gone = [row.pk for row in stated if (row.type, row.target_id) not in kept]
            FactRelation.objects.filter(pk__in=gone).delete()
        self.store(fact, now=now, quote=fact.raw)
        if self.quoted:
            FactEvidence.objects.filter(fact=fact, turn=self.quoted).update(quote=fact.raw)


def rest_on(fact: Fact, provenance: Provenance, *, quote: str, visible: FactQuerySet | None) -> ResolvedEvidence:
    """What a fact that exists rests on once this is added; the caller as for resolve_evidence(), whose errors it has.

    `quote`: a new one, which one of its turns has to contain, those that it rests on already included; empty for none.
    """
    itself = [place for place, relation in enumerate(provenance.relations) if relation.target_id == fact.pk]
    if itself:
        detail = _("This is the fact itself. Name another one.")
        raise InvalidInput(faults=[Fault(f"/relations/{place}/target_id", "itself", detail) for place in itself])
    named = resolve_evidence(fact.end_user, provenance, raw="", visible=visible)
    if not quote:
        return named
    cited = FactEvidence.objects.filter(fact=fact, turn__isnull=False).select_related("turn__session")
    turns = {turn.pk: turn for turn in (*named.turns, *(row.turn for row in cited if row.turn))}
    return replace(named, quoted=_quoted(list(turns.values()), quote))


def lock_sessions(end_user: EndUser, evidence: Sequence[uuid.UUID]) -> None:
    """Lock the sessions of these turns against deletion; new turns may come meanwhile.

    Before the person: sessions first, then the people, as everybody locks them. Without it a deletion of one of them
    would wait for the person, and our evidence for the session.
    """
    if evidence:
        with connection.cursor() as cursor:
            cursor.execute(
                _LOCK_SESSIONS, {"turns": list(evidence), "tenant": end_user.tenant_id, "person": end_user.pk}
            )


def resolve_evidence(
    end_user: EndUser, provenance: Provenance, *, raw: str, visible: FactQuerySet | None
) -> ResolvedEvidence:
    """The rows of these ids; the caller has called lock_sessions() and locked the person.

    `raw` is the quote without secrets, as turns are. Errors: InvalidInput, each fault at its place.
    """
    own_turns = Turn.objects.filter(tenant=end_user.tenant, end_user=end_user)
    turns = own_turns.in_bulk(list(provenance.evidence)) if provenance.evidence else {}
    targets = _targets(end_user, provenance.relations, visible=visible)
    _check(provenance, turns=turns, targets=targets)
    cited = [turns[turn_id] for turn_id in dict.fromkeys(provenance.evidence)]
    related = dict.fromkeys((relation.type, relation.target_id) for relation in provenance.relations)
    return ResolvedEvidence(cited, _quoted(cited, raw), [(kind, targets[pk]) for kind, pk in related])


def check_stranger(provenance: Provenance) -> None:
    """Refuse any id when the person does not exist yet, so that a refused request makes nobody.

    Errors: as resolve_evidence().
    """
    _check(provenance, turns={}, targets={})


def _check(provenance: Provenance, *, turns: Mapping[uuid.UUID, Turn], targets: Mapping[uuid.UUID, Fact]) -> None:
    faults = [
        Fault(f"/evidence/{place}", "does_not_exist", _("The person has no turn with this id."))
        for place, turn_id in enumerate(provenance.evidence)
        if turn_id not in turns
    ]
    faults += [
        Fault(f"/relations/{place}/target_id", "does_not_exist", _("The person has no fact with this id."))
        for place, relation in enumerate(provenance.relations)
        if relation.target_id not in targets
    ]
    if faults:
        raise InvalidInput(faults=faults)


def _targets(
    end_user: EndUser, relations: Sequence[RelationDraft], *, visible: FactQuerySet | None
) -> dict[uuid.UUID, Fact]:
    if not relations:
        return {}
    facts = Fact.objects.all() if visible is None else visible
    named = facts.of(end_user.tenant, end_user).filter(pk__in=[relation.target_id for relation in relations])
    # Locked, so that none of them is deleted before its relation is there.
    return {fact.pk: fact for fact in named.select_for_update(of=("self",), no_key=True).order_by("pk")}


def _quoted(turns: Sequence[Turn], raw: str) -> Turn | None:
    """The turn that contains the quote, the user's own first. Errors: InvalidInput when no cited turn does."""
    if not raw or not turns:
        return None
    users_first = sorted(turns, key=lambda turn: not turn.is_said)
    # Without echoes: a turn that repeats our own context is no source.
    quoted = [turn for turn in users_first if TranscriptTurn(turn, echo.cut_echo(turn.own_text)).contains(raw)]
    if not quoted:
        raise InvalidInput.at(
            "/raw",
            _("None of the cited turns contains this quote. Quote one of them word for word, or leave the quote out."),
            code="not_quoted",
        )
    return quoted[0]
