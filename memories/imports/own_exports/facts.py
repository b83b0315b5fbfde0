"""Rows of facts with evidence, history and relations, and what was refused."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from memories import audit, conf, outbox
from memories.content_policy import Road
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import WriteTrust
from memories.facts import review_items
from memories.facts.review_items import REASON_OF_FLAG, REASON_OF_TRUST, Reason, ReviewQuestion
from memories.facts.write import texts_of
from memories.graph import following
from memories.imports.own_exports.values import built, check_letters, inners, mapped, reference
from memories.imports.own_exports.ways import (
    DANGLING,
    ONLY_A_HASH,
    Given,
    Here,
    Row,
    check_policy,
    is_allowed,
    written,
)
from memories.imports.raw_documents import RefusedDocumentError
from memories.models import (
    ActorKind,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    ImportedRow,
    MemoryScope,
    Session,
    Status,
    Trust,
    Turn,
)
from memories.models.folding import refusal_of_key, refusal_of_text
from memories.text import value_texts
from memories.text.injection import detection


def fact(here: Here, made: Fact, given: Given) -> None:
    if not made.content:
        raise RefusedDocumentError("/content blank")
    if isinstance(made.structured, list) or isinstance(made.document, list) or not _are_triples(made):
        raise RefusedDocumentError("/structured invalid")
    check_policy(here, Road.STATEMENT, *texts_of(made))
    is_operators = written(here, made)
    is_limited = given.get("allowed_users") or given.get("allowed_others")
    made.allowed_users = [here.person.external_id] if is_limited else []
    # Whether everybody is told is for this hub's operators to say.
    made.scope = MemoryScope.PRIVATE if made.scope == MemoryScope.PUBLIC else made.scope
    made.set_text(made.content)
    if made.status != Status.ACTIVE or is_operators:
        return
    write_trust = WriteTrust(Trust(made.trust), imports=True)
    flags = {*guarding.flags_of_fact(made, write_trust)}
    new = flags & {detection.INSTRUCTIONS} - set(made.flags) if here.is_trusted else flags
    if new or not (here.is_trusted or write_trust.is_believed(conf.rules(here.tenant))):
        made.status, made.flags = Status.PENDING, sorted({*made.flags, *new})


def _are_triples(made: Fact) -> bool:
    try:
        return all(isinstance(part, str) for _, _, *parts, _ in following.triples_of(made) for part in parts)
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def beside_facts(here: Here, rows: Sequence[Row]) -> None:
    facts = [row.made for row in rows]
    _evidence(here, rows)
    FactRevision.objects.bulk_create(revision for row in rows for revision in _revisions(here, row))
    following.sync_triples(facts, now=here.now)
    # Triples of facts are dated by them.
    outbox.facts_changed([(fact, {}) for fact in facts if fact.status == Status.ACTIVE], now=here.now)
    waiting = [fact for fact in facts if fact.status == Status.PENDING]
    here.waiting += len(waiting)
    review_items.ask_all((ReviewQuestion(_why(fact), fact=fact) for fact in waiting), run=None, now=here.now)


def _why(fact: Fact) -> Any:
    found = (reason for flag, reason in REASON_OF_FLAG.items() if flag in fact.flags)
    return next(found, REASON_OF_TRUST.get(fact.trust, Reason.SUGGESTED))


def _evidence(here: Here, rows: Sequence[Row]) -> None:
    given = [(row.made, one) for row in rows for one in inners(row.given, "evidence")]
    turns = here.known(Turn, (reference(one, "turn") for _, one in given))
    sessions = here.known(Session, (reference(one, "session") for _, one in given))
    made = []
    for fact, one in given:
        session, turn = sessions.get(reference(one, "session") or fact.pk), reference(one, "turn")
        if session is None or reference(one, "session") in here.taken:
            here.left_out[DANGLING] += 1
            continue
        own = built(FactEvidence, one)
        own.tenant_id, own.fact_id, own.session_id = here.tenant.pk, fact.pk, session
        own.turn_id = turns.get(turn) if turn else None
        own.quote = own.quote if is_allowed(here, own.quote) else ""
        made.append(own)
    FactEvidence.objects.bulk_create(made, ignore_conflicts=True)


def _revisions(here: Here, row: Row) -> Any:
    """What changed in a fact. A change set is of the other hub: nothing here is undone with it."""
    for one in inners(row.given, "revisions"):
        own = built(FactRevision, {**one, "change_set": None})
        own.tenant_id, own.fact_id = here.tenant.pk, row.made.pk
        own.before, own.after = (_snapshot(here, one.get(name)) for name in ("before", "after"))
        if not here.is_trusted and own.actor_kind == ActorKind.OPERATOR:
            own.actor_kind = ActorKind.COMMAND
        if is_allowed(here, *_said(own.before), *_said(own.after)):
            yield own


def _said(state: Mapping[str, Any]) -> list[str]:
    """What a state of a fact says, as far as it has it."""
    key = f"{state.get('key') or ''} {state.get('value') or ''}".replace("_", " ")
    given = [state.get(name) for name in ("content", "raw", "source_error", "tags", "structured")]
    return [key, *value_texts.strings(given)]


def _snapshot(here: Here, state: Any) -> dict[str, Any]:
    """A state of a fact, which an operator can bring back: with this hub's names and ids."""
    check_letters(state)
    names = (*audit.REVISED_FIELDS, *audit.REVISED_MOMENTS, "superseded_by")
    kept = {name: state[name] for name in names if name in state} if isinstance(state, dict) else {}
    if "allowed_users" in kept:
        is_limited = kept["allowed_users"] or state.get("allowed_others")
        kept["allowed_users"] = [here.person.external_id] if is_limited else []
    if old := reference(kept, "superseded_by"):
        kept["superseded_by"] = str(mapped(here.person.pk, old))
    return kept


def link_facts(here: Here, rows: Sequence[Given]) -> None:
    told = [(row, one) for row in rows for one in inners(row, "relations")]
    olds = [reference(row, name) for row in rows for name in ("id", "superseded_by")]
    known = here.known(Fact, [*olds, *(reference(one, "target") for _, one in told)])
    for row in rows:
        fact, later = (known.get(reference(row, name) or here.person.pk) for name in ("id", "superseded_by"))
        if fact and later and fact != later:
            Fact.objects.filter(pk=fact, superseded_by=None).update(superseded_by=later)
    relations = []
    for row, one in told:
        fact, target = (known.get(reference(of, name) or here.person.pk) for of, name in ((row, "id"), (one, "target")))
        if fact and target and fact != target:
            own = built(FactRelation, one)
            own.tenant_id, own.fact_id, own.target_id = here.tenant.pk, fact, target
            relations.append(own)
    FactRelation.objects.bulk_create(relations, ignore_conflicts=True)


def refusals(here: Here, rows: Sequence[Given]) -> tuple[int, int, Mapping[str, int]]:
    """What was refused there is refused here, where the fact that says it came, too: of the others only a keyed hash of
    that hub is left."""
    known = here.known(Fact, (reference(row, "fact") for row in rows))
    facts = {fact.pk: fact for fact in Fact.objects.filter(pk__in=known.values())}
    made = []
    for row in rows:
        fact = facts.get(known.get(reference(row, "fact") or here.person.pk, here.person.pk))
        by_key = row.get("kind") == FactRefusal.RefusalKind.KEY
        if fact and (fact.key or not by_key):
            own = built(FactRefusal, row)
            own.actor_kind = own.actor_kind if here.is_trusted else ActorKind.COMMAND
            own.digest = refusal_of_key(fact.category, fact.key) if by_key else refusal_of_text(fact.content)
            own.tenant_id, own.end_user_id, own.fact_id = here.tenant.pk, here.person.pk, fact.pk
            made.append(own)
    theirs = FactRefusal.objects.filter(end_user=here.person.pk)
    before = set(theirs.values_list("pk", flat=True))
    FactRefusal.objects.bulk_create(made, ignore_conflicts=True)
    new = theirs.exclude(pk__in=before).values_list("pk", flat=True)
    # They have numbers for ids.
    noted = [ImportedRow(kind=ImportedRow.Kind.REFUSAL, row=uuid.UUID(int=pk)) for pk in new]
    here.note(*noted)
    return len(noted), len(made) - len(noted), {ONLY_A_HASH: len(rows) - len(made)}
