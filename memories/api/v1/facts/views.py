"""/facts: remembered statements about a person."""

import uuid
from functools import cached_property
from typing import Any

from django.db.models import Q, prefetch_related_objects
from rest_framework.request import Request
from rest_framework.response import Response

from memories import conf
from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.facts.serializers import (
    ANY_STATUS,
    ORDERS,
    DeletedSerializer,
    Deletion,
    DeletionSerializer,
    FactChangesSerializer,
    FactFeedbackSerializer,
    FactFilters,
    FactHistoryQuery,
    FactQuery,
    FactSerializer,
    FactsQuery,
    NewFactSerializer,
    RestoreSerializer,
    RevisionSerializer,
)
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.api.visibility import FactVisibility
from memories.curation.facts import many
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.feedback import give_feedback
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.readers import check_names
from memories.curation.facts.restoring import restore_fact
from memories.curation.people.records import person_for_writing
from memories.curation.statements.provenance import Provenance, RelationDraft, check_stranger
from memories.db import closed_indexes
from memories.exceptions import DuplicateFact, KeyBound, NotFound
from memories.models import EndUser, Fact, FactQuerySet, Scope, Status
from memories.retrieval.outdated import turns_still_saying

# How many of the person's turns still say what was forgotten.
STILL_SAID = "X-Memory-Still-Said"
# So many ids a deletion by filter shows.
EXAMPLES = 20


class FactEndpoint(Endpoint):
    """What the views of one fact share."""

    # Whose fact it is, once it is found.
    person: EndUser

    @cached_property
    def visibility(self) -> FactVisibility:
        """Which facts the caller sees. Views set it anew once they have read the input."""
        return FactVisibility.of(self.caller, {})

    def handle_exception(self, exc: Exception) -> Response:
        # Name the fact with the same text only to a caller who sees that fact.
        if isinstance(exc, DuplicateFact) and exc.fact_id:
            twin = lookups.fact(tenant=self.tenant, fact_id=exc.fact_id)
            exc.fact_id = twin.pk if self.visibility.includes(twin) else None
        return super().handle_exception(exc)

    def visible_fact(self, fact_id: uuid.UUID, query: dict[str, Any] | None = None) -> Fact:
        """The fact, if the caller sees it. Errors: NotFound, InvalidInput."""
        self.visibility = FactVisibility.of(self.caller, self.query(FactQuery) if query is None else query)
        fact = lookups.fact(tenant=self.tenant, fact_id=fact_id)
        if not self.visibility.includes(fact):
            raise NotFound
        self.person = fact.end_user
        return fact

    def change(self, fact_id: uuid.UUID, query: dict[str, Any] | None = None) -> dict[str, Any]:
        """Arguments of every verb on a fact: which one, by whom, when, and at which version.

        Errors: NotFound where the caller does not see it, KeyBound where the key is for another agent.
        """
        fact = self.visible_fact(fact_id, query)
        if self.caller.agent_id not in ("", fact.agent_id):
            raise KeyBound("This key is for one agent alone, and this fact is not that agent's.")
        return {
            "fact_id": fact_id,
            "tenant": self.tenant,
            "actor": self.actor,
            "now": self.now,
            "expected_version": self.expected_version(),
        }

    def changed(self, fact_id: uuid.UUID, *, status: int = 200) -> Response:
        """The fact as it is after a change."""
        return self.answer(lookups.fact(tenant=self.tenant, fact_id=fact_id), status=status)

    def answer(self, fact: Fact, *, status: int = 200) -> Response:
        self.subject_fact = fact.pk
        self.subjects.add(fact.end_user_id)
        prefetch_related_objects([fact], self.visibility.relations(fact.end_user))
        return self.versioned(fact, FactSerializer, status=status)


class FactsView(FactEndpoint):
    @operation(
        "listFacts",
        "List a person's facts, newest first unless sorted otherwise",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[FactsQuery],
        answers={200: page_of(FactSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(FactsQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        rows: FactQuerySet = Fact.objects.none()
        if person:
            visibility = FactVisibility.of(self.caller, given)
            rows = visibility.filter(lookups.facts(self.tenant).filter(end_user=person), person)
            rows = rows.prefetch_related(visibility.relations(person))
        rows = _selected(rows, given, tenant_id=self.tenant.pk)
        return self.listed(rows, FactSerializer, given=given, ordering=ORDERS[given["sort"]])

    @operation(
        "addFact",
        "State a fact",
        description=(
            "By a key that writes as the user it is active at once. It is `pending`, and served nowhere, until an "
            "operator approves it when an agent or a tool states it, when it speaks to a model, or when it contradicts "
            "what it may not replace. The same text again is a 409 that names the known fact. The same value for a key "
            "in other words confirms the known fact: 200."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=NewFactSerializer,
        parameters=[etag(200, 201)],
        answers={200: FactSerializer, 201: FactSerializer},
        problems=(409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewFactSerializer)
        user_id, write_trust = given.pop("user_id"), self.write_trust(given.pop("stated_by", None))
        relations = [RelationDraft(**relation) for relation in given.pop("relations", ())]
        sources = {name: given.pop(name) for name in ("raw", "source", "evidence", "valid_from") if name in given}
        provenance = Provenance(relations=relations, **sources)
        if lookups.find_person(tenant=self.tenant, user_id=user_id) is None:
            check_stranger(provenance)
            check_names(given.get("allowed_users", ()), known={user_id})
        person = person_for_writing(tenant=self.tenant, user_id=user_id, now=self.now)
        self.visibility = FactVisibility.of(self.caller, given)
        stated = add_fact(
            end_user=person,
            draft=FactDraft(**given),
            actor=self.actor,
            now=self.now,
            write_trust=write_trust,
            provenance=provenance,
            visible=self.visibility.filter(Fact.objects.all(), person),
        )
        return self.changed(stated.row.pk, status=201 if stated.is_new else 200)


class FactsDeletionView(FactEndpoint):
    @operation(
        "deleteFacts",
        "Forget all facts that filters select",
        description="First a dry run, which answers how many and a token; then the same with the token. When other "
        "facts are selected by then, or one of them has changed, the answer is 409 and nothing is deleted. At most "
        "1,000 facts. They go to the trash and are refused, as by DELETE /facts/{id}.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=DeletionSerializer,
        answers={200: DeletedSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(DeletionSerializer)
        person = lookups.require_unrestricted(lookups.person(tenant=self.tenant, user_id=given["user_id"]))
        facts = Fact.objects.of(self.tenant, person)
        visible = FactVisibility.of(self.caller, given).filter(facts, person)
        rows = _selected(visible, given, tenant_id=self.tenant.pk)
        if self.caller.agent_id:
            # A key for an agent changes that agent's facts alone.
            rows = rows.filter(agent_id=self.caller.agent_id)
        if given["dry_run"]:
            seen = many.look(rows, write_trust=self.write_trust(), rules=conf.rules(self.tenant))
        else:
            seen = many.forget_facts(
                end_user=person,
                facts=rows,
                token=given["token"],
                actor=self.actor,
                now=self.now,
                write_trust=self.write_trust(),
            )
        self.subjects.add(person.pk)
        ids = [fact.pk for fact in seen.facts[:EXAMPLES]]
        shown = {"dry_run": given["dry_run"], "facts": len(seen.facts), "kept": seen.kept, "ids": ids}
        return Response({**shown, "token": seen.token})


class FactView(FactEndpoint):
    @operation(
        "getFact",
        "Get a fact",
        scope=Scope.READ,
        bound=Bound.FACT,
        parameters=[FactQuery, etag(200)],
        answers={200: FactSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, fact_id: uuid.UUID) -> Response:
        return self.answer(lookups.require_readable(self.visible_fact(fact_id)))

    @operation(
        "changeFact",
        "Change the named fields of a fact",
        description=(
            "A fact that an operator corrected, pinned or locked answers 409 `operator_word`. One that a key locked "
            "answers 409 `locked`, unless the change lifts the lock. A text that speaks to a model answers 409 "
            "`review_needed`; so does a key that writes as an agent on what the user said, or on what is served."
        ),
        scope=Scope.WRITE,
        bound=Bound.OWN_FACT,
        request=FactChangesSerializer,
        parameters=[FactQuery, if_match(), etag(200)],
        answers={200: FactSerializer},
        problems=(404, 409, 412, 423),
    )
    def patch(self, request: Request, fact_id: uuid.UUID) -> Response:
        changes = self.body(FactChangesSerializer)
        write_trust = self.write_trust(changes.pop("stated_by", None))
        if "relations" in changes:
            changes["relations"] = [RelationDraft(**relation) for relation in changes["relations"]]
        change = self.change(fact_id)
        # Of these are the facts that it is said to relate to.
        visible = self.visibility.filter(Fact.objects.all(), self.person)
        edit_fact(changes=changes, write_trust=write_trust, visible=visible, **change)
        fact = lookups.fact(tenant=self.tenant, fact_id=fact_id)
        if "content" in changes:
            # Only this answer counts them.
            fact.still_said_by = len(turns_still_saying(fact.end_user, fact.pk))
        return self.answer(fact)

    @operation(
        "deleteFact",
        "Forget a fact",
        description="It goes to the trash, and what it says is not taken from a conversation again. A key that writes "
        "as an agent gets 409 `review_needed` where it may not change the fact, unless it stated it itself. "
        "`X-Memory-Still-Said`: how many of the person's turns still say it.",
        scope=Scope.WRITE,
        bound=Bound.OWN_FACT,
        parameters=[Deletion, if_match()],
        answers={204: None},
        problems=(404, 409, 412, 423),
    )
    def delete(self, request: Request, fact_id: uuid.UUID) -> Response:
        given = self.query(Deletion)
        change = self.change(fact_id, given)
        if given["hard"]:
            delete_fact(write_trust=self.write_trust(), **change)
            return Response(status=204)
        forget_fact(write_trust=self.write_trust(), **change)
        fact = lookups.fact(tenant=self.tenant, fact_id=fact_id)
        # An answer without a body has no other place.
        return Response(status=204, headers={STILL_SAID: str(len(turns_still_saying(fact.end_user, fact.pk)))})


class FactHistoryView(FactEndpoint):
    @operation(
        "listFactHistory",
        "List a fact's versions, newest first",
        scope=Scope.READ,
        bound=Bound.FACT,
        parameters=[FactHistoryQuery],
        answers={200: page_of(RevisionSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, fact_id: uuid.UUID) -> Response:
        given = self.query(FactHistoryQuery)
        fact = lookups.require_readable(self.visible_fact(fact_id, given))
        return self.listed(fact.revisions.all(), RevisionSerializer, given=given, ordering=["-version"])


class FactRestoreView(FactEndpoint):
    @operation(
        "restoreFact",
        "Bring a fact back from the trash, or to what it said in an earlier version",
        description="What a key may not make of a fact by changing it answers 409 `review_needed` here, too.",
        scope=Scope.WRITE,
        bound=Bound.OWN_FACT,
        request=RestoreSerializer,
        parameters=[FactQuery, if_match(), etag(200)],
        answers={200: FactSerializer},
        problems=(404, 409, 412, 423),
        idempotent=True,
    )
    def post(self, request: Request, fact_id: uuid.UUID) -> Response:
        version = self.body(RestoreSerializer).get("version")
        restore_fact(version=version, write_trust=self.write_trust(), **self.change(fact_id))
        return self.changed(fact_id)


class FactFeedbackView(FactEndpoint):
    @operation(
        "giveFactFeedback",
        "Say whether a fact helped",
        description=(
            "A useful one counts as confirmed now and matters more (importance + 0.05), another matters less (− 0.1). "
            "What an operator corrected, pinned or locked stays as it is. A key that writes as an agent gets 409 "
            "`review_needed` where it says that a fact of more trust did not help."
        ),
        scope=Scope.WRITE,
        bound=Bound.FACT,
        request=FactFeedbackSerializer,
        parameters=[FactQuery, etag(200)],
        answers={200: FactSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request, fact_id: uuid.UUID) -> Response:
        useful = self.body(FactFeedbackSerializer)["useful"]
        self.visible_fact(fact_id)
        write_trust = self.write_trust()
        give_feedback(
            fact_id=fact_id, tenant=self.tenant, useful=useful, actor=self.actor, now=self.now, write_trust=write_trust
        )
        return self.changed(fact_id)


def _selected(rows: FactQuerySet, given: dict[str, Any], *, tenant_id: uuid.UUID) -> FactQuerySet:
    """Those of a person's rows that FactFilters ask for."""
    if as_of := given.get("as_of"):
        rows = rows.held_at(as_of)
        if given["status"] == Status.ACTIVE:
            # What is active now is not all that was true then.
            given = {**given, "status": ANY_STATUS}
    if "q" in given:
        rows = rows.saying(given["q"])
    if "tag" in given:
        tagged = Q(tags__contains=[given["tag"]])
        rows = rows.filter(closed_indexes.opened(tagged, rows, tenant_id=tenant_id))
    return selected(rows, FactFilters, given)
