"""What a model reads: contexts, searches and lists, as the API has them, always framed as data (rules.md, 3.4).

Whatever a client shows its model, the text or the data, no stored text can end its line or close the frame.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from memories.answering import answer
from memories.answering.answer import AnswerRequest, AnswerStatus
from memories.api import lookups
from memories.api.v1.answer.serializers import MAX_QUESTION
from memories.api.v1.context.serializers import DEFAULT_TOKENS, MAX_QUERY, MAX_TOKENS
from memories.api.v1.fields import ExactText, OneOf, OurId, Strict, TokenizerName, Whole
from memories.api.visibility import FactVisibility
from memories.context import context
from memories.context.context import Context, ContextRequest
from memories.context.recalled_turns import RECALLED_ROLES
from memories.context.rendering import one_line
from memories.exceptions import InvalidInput, NotFound
from memories.invisible import strip_invisible
from memories.llm.prompts.framing import shorten
from memories.llm.tokenizers import DEFAULT_TOKENIZER
from memories.mcp_server.callers import MCPCaller
from memories.mcp_server.calls import AgentCall, ToolResult
from memories.models import (
    Category,
    Fact,
    FactQuerySet,
    GroupFact,
    Scope,
    SkillTrial,
    Tenant,
)
from memories.models.memories.skills import LONGEST_NAME
from memories.models.memories.visibility import Viewer
from memories.profiles import read_profiles, schemas_for, statement_of
from memories.retrieval import search
from memories.retrieval.evidence import Level, strongest
from memories.retrieval.search import DOCUMENT, EPISODE, FACT, GROUP_FACT, TURN, Finding, SearchFilters, SearchRequest
from memories.retrieval.serving import audience
from memories.skills import serving, trials
from memories.text import uploads
from memories.text.memory_block import CLOSING, ENGLISH, FRAMES, OPENING
from memories.time_zones import day_of

MOST_FOUND, FOUND = 50, 10
SEARCHED = (FACT, EPISODE, TURN, DOCUMENT)
SEARCHED_BY_DEFAULT = (FACT, EPISODE, TURN)
MOST_LISTED, LISTED = 200, 50
_NO_FILE = dict.fromkeys(("file", "page", "place"))
_NOTHING = "Nothing is remembered of this person that may be shown."
_NOTHING_FOUND = "Nothing that is remembered of this person answers that."
_NOTHING_CLOSE = _NOTHING_FOUND + " This is the nearest:"
_NO_SKILL = "There is no skill for this agent."
_RESTRICTED = "This person is restricted while a privacy case is open: nothing is shown."
_OFF = "Memory is switched off here: nothing is shown."


class SearchInput(Strict):
    query = ExactText(max_length=MAX_QUERY)
    limit = Whole(min_value=1, max_value=MOST_FOUND, default=FOUND)
    kinds = serializers.ListField(child=OneOf(SEARCHED), required=False, allow_empty=False, max_length=len(SEARCHED))
    min_evidence = OneOf([level.value for level in Level], default=Level.NONE.value)


class ContextInput(Strict):
    query = ExactText(required=False, allow_null=True, allow_blank=True, max_length=MAX_QUERY)
    max_tokens = Whole(min_value=1, max_value=MAX_TOKENS, default=DEFAULT_TOKENS)
    tokenizer = TokenizerName(default=DEFAULT_TOKENIZER)


class ListInput(Strict):
    category = OneOf(Category.values, required=False, allow_null=True)
    limit = Whole(min_value=1, max_value=MOST_LISTED, default=LISTED)
    cursor = OurId(required=False, allow_null=True)


class ProfileInput(Strict):
    name = ExactText(required=False, allow_null=True, max_length=24)


class SkillInput(Strict):
    name = ExactText(required=False, allow_null=True, max_length=LONGEST_NAME)


class QuestionInput(Strict):
    question = ExactText(max_length=MAX_QUESTION)


class PromptInput(Strict):
    task = ExactText(required=False, default="", allow_blank=True, max_length=MAX_QUERY)


def search_memory(call: AgentCall) -> ToolResult:
    asker, given = call.asker, call.read(SearchInput)
    asked = SearchRequest(
        user_id=asker.user_id,
        query=given["query"],
        kinds=tuple(dict.fromkeys(given.get("kinds") or SEARCHED_BY_DEFAULT)),
        limit=given["limit"],
        filters=SearchFilters(agent_id=asker.agent_id or None),
        min_evidence=Level(given["min_evidence"]),
        for_agent=True,
    )
    found = search.search(tenant=asker.tenant, search=asked, now=call.now)
    # As in a context: what speaks to a model, and what nobody vouches for, is not told to one.
    served = [one for one in found.results if not one.flagged and (one.kind != TURN or one.role in RECALLED_ROLES)]
    told = [(one, row) for one in served if (row := _found(one, found.zone))["text"]]
    rows, level = [row for _, row in told], strongest([one.evidence_level for one, _ in told])
    memory = _framed(asker.tenant, [_line_of(row) for row in rows], found.zone)
    text = f"{_NOTHING_CLOSE}\n{memory}" if memory and level == Level.NONE else memory
    answer = {"memory": memory, "results": rows, "evidence": level.value}
    return ToolResult(text or _why_nothing(found, _NOTHING_FOUND), answer)


def get_context(call: AgentCall) -> ToolResult:
    given = call.read(ContextInput)
    query, tokenizer = (given.get("query") or "").strip(), given["tokenizer"]
    built = build_context(call, query=query, max_tokens=given["max_tokens"], tokenizer=tokenizer)
    return ToolResult(
        built.memory or _why_nothing(built, _NOTHING), {"memory": built.memory, "token_count": built.token_count}
    )


def get_skills(call: AgentCall) -> ToolResult:
    """The skills that the agent is given, or the file of one: an operator has reviewed every line of it."""
    asker, name = call.asker, call.read(SkillInput).get("name") or ""
    person = lookups.find_person(tenant=asker.tenant, user_id=asker.user_id)
    offered = serving.offer(serving.Session(asker.tenant, person, asker.agent_id))
    found = offered.named(name)
    trials.note(offered, SkillTrial.Via.MCP, now=call.now, read=[name] if found else [])
    shown = [{"name": one.name, "description": one.description} for one in offered.served]
    listed = "\n".join(f"- {one['name']}: {one['description']}" for one in shown)
    if name and found is None:
        raise NotFound(_("There is no skill of this name for this agent."))
    return ToolResult(
        found.content if found else listed or _NO_SKILL, {"skills": shown, "content": found.content if found else ""}
    )


def answer_question(call: AgentCall) -> ToolResult:
    """Sentences that name the memories which say them; without a model, the memories that answer."""
    asker = call.asker
    question = call.read(QuestionInput)["question"]
    asked = AnswerRequest(user_id=asker.user_id, question=question, agent_id=asker.agent_id or "")
    found = answer.answer(tenant=asker.tenant, request=asked, now=call.now)
    sentences = [
        {"text": one_line(one.text), "citations": [str(found.evidence[at - 1].id) for at in one.memories]}
        for one in found.sentences
    ]
    is_bare = found.status == AnswerStatus.EVIDENCE
    rows = [row for one in found.evidence if (row := _found(one, found.zone))["text"]] if is_bare else []
    lines = [f"- {one['text']} (ids {', '.join(one['citations'])})" for one in sentences]
    memory = _framed(asker.tenant, lines or [_line_of(row) for row in rows], found.zone)
    told = {"status": found.status.value, "memory": memory, "sentences": sentences, "results": rows}
    return ToolResult(memory or _why_nothing(found, _NOTHING_FOUND), told)


def list_memories(call: AgentCall) -> ToolResult:
    asker, given = call.asker, call.read(ListInput)
    found = audience(tenant=asker.tenant, user_id=asker.user_id, agent_id=asker.agent_id)
    if found.person is None:
        return ToolResult(_why_nothing(found, _NOTHING), {"memory": "", "results": [], "next_cursor": None})
    facts = visible_facts(asker).active(now=call.now).order_by("-pk")
    if given.get("category"):
        facts = facts.filter(category=given["category"])
    if given.get("cursor"):
        facts = facts.filter(pk__lt=given["cursor"])
    zone = found.person.clock
    page = [_of_fact(fact, zone) for fact in facts[: given["limit"] + 1]]
    if found.has_groups and not given.get("category"):
        shared = GroupFact.objects.served_to(found.person).select_related("group").order_by("-pk")
        if given.get("cursor"):
            # Ids tell which is newer, also beside the person's facts.
            shared = shared.filter(pk__lt=given["cursor"])
        page += [_of_group_fact(fact, zone) for fact in shared[: given["limit"] + 1]]
        page.sort(key=lambda row: row["id"], reverse=True)
    rows = page[: given["limit"]]
    text = _framed(asker.tenant, [_line_of(row) for row in rows], zone)
    following = rows[-1]["id"] if len(page) > len(rows) else None
    more = f"\nThere are more: call it again with cursor {following}." if following else ""
    return ToolResult(text + more if rows else _NOTHING, {"memory": text, "results": rows, "next_cursor": following})


def read_profile(call: AgentCall) -> ToolResult:
    built = build_context(call, max_tokens=MAX_TOKENS, include=frozenset({"profile"}))
    return ToolResult(built.memory or _why_nothing(built, _NOTHING))


def get_profile(call: AgentCall) -> ToolResult:
    """The tenant's own profiles of the person, or the one of this name. Errors: InvalidInput for an unknown name."""
    asker, name = call.asker, call.read(ProfileInput).get("name")
    defined = schemas_for(asker.tenant, asker.agent_id)
    rows = [row for row in defined if name in (None, row.name)]
    if name is not None and not rows:
        known = ", ".join(row.name for row in defined) or "none"
        raise InvalidInput.at("/name", f"There is no such profile. There are: {known}.")
    found = audience(tenant=asker.tenant, user_id=asker.user_id, agent_id=asker.agent_id)
    if found.person is None or not rows:
        why = _why_nothing(found, _NOTHING) if rows else "No profile of its own is defined here."
        return ToolResult(why, {"memory": "", "profiles": []})
    profiles = read_profiles(found.person, rows, Viewer(asker.agent_id), now=call.now)
    lines = [f"- {one_line(statement_of(one.field, one.value))}" for profile in profiles for one in profile.values]
    text = _framed(asker.tenant, lines, found.person.clock)
    shown = [
        {
            "name": profile.schema.name,
            "document": _one_lined(profile.document),
            "missing": profile.missing,
            "revision": profile.revision,
        }
        for profile in profiles
    ]
    return ToolResult(text or _NOTHING, {"memory": text, "profiles": shown})


def read_own_profiles(call: AgentCall) -> ToolResult:
    return get_profile(replace(call, given={}))


def read_facts(call: AgentCall) -> ToolResult:
    return list_memories(replace(call, given={"limit": MOST_LISTED}))


def remember_for(call: AgentCall) -> ToolResult:
    """What matters for the task of a prompt, and what to remember if the key can write; an empty text for nothing."""
    writes = Scope.WRITE in call.asker.caller.key.scopes
    built = build_context(call, query=call.read(PromptInput)["task"].strip(), guidelines=writes)
    return ToolResult("\n\n".join(one for one in (built.guidelines, built.memory) if one))


def build_context(call: AgentCall, *, query: str = "", max_tokens: int = DEFAULT_TOKENS, **limits: Any) -> Context:
    """The person's context for this agent; `limits` are those of a ContextRequest."""
    asker = call.asker
    request = ContextRequest(asker.user_id, asker.agent_id, query=query, max_tokens=max_tokens, **limits)
    return context.build(tenant=asker.tenant, request=request, now=call.now, key_id=asker.caller.key.pk)


def visible_facts(asker: MCPCaller) -> FactQuerySet:
    """The person's facts that the key sees; none of an unknown or restricted person."""
    person = lookups.readable_person(tenant=asker.tenant, user_id=asker.user_id)
    if person is None:
        return Fact.objects.none()
    rows: FactQuerySet = lookups.facts(asker.tenant).filter(end_user=person)
    return FactVisibility.of(asker.caller, {"agent_id": asker.agent_id}).filter(rows, person)


def _found(one: Finding, zone: tzinfo) -> dict[str, Any]:
    text = uploads.cut_blocks(one.text) if one.kind == TURN else one.text
    return {
        "kind": one.kind,
        "id": str(one.id),
        "text": one_line(shorten(text.strip())),
        "category": one.category,
        "confidence": one.confidence,
        "role": one.role,
        "group": one_line(one.group.name) if one.group else None,
        "date": day_of(one.created_at, zone),
        "score": one.score,
        "evidence_level": one.evidence_level.value,
        "file": one_line(strip_invisible(one.name)) if one.name else None,
        "page": one.page,
        "place": one_line(strip_invisible(one.place)) if one.place else None,
    }


def _of_fact(fact: Fact, zone: tzinfo) -> dict[str, Any]:
    return {
        "kind": FACT,
        "id": str(fact.pk),
        "text": one_line(fact.content),
        "category": fact.category,
        "confidence": round(fact.confidence, 6),
        "role": None,
        "group": None,
        "date": day_of(fact.last_confirmed_at, zone),
        "score": None,
        "evidence_level": None,
        **_NO_FILE,
    }


def _of_group_fact(fact: GroupFact, zone: tzinfo) -> dict[str, Any]:
    return {
        "kind": GROUP_FACT,
        "id": str(fact.pk),
        "text": one_line(fact.content),
        "category": None,
        "confidence": None,
        "role": None,
        "group": one_line(fact.group.name),
        "date": day_of(fact.said_at, zone),
        "score": None,
        "evidence_level": None,
        **_NO_FILE,
    }


def _one_lined(value: Any) -> Any:
    """A document without a text that could end its line or close the frame."""
    if isinstance(value, dict):
        return {name: _one_lined(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_one_lined(one) for one in value]
    return one_line(value) if isinstance(value, str) else value


def _line_of(row: dict[str, Any]) -> str:
    """As in a context; of a fact also its id, for what is to be done with it."""
    if row["kind"] == FACT:
        return f"- [{row['category']} | {row['confidence']:.2f}] {row['text']} (id {row['id']})"
    if row["kind"] == GROUP_FACT:
        # Without its id: no tool changes what others share.
        return f"- [group: {row['group']}] {row['text']}"
    if row["kind"] == DOCUMENT:
        where = ", ".join(filter(None, (row["file"], f"page {row['page']}" if row["page"] else "", row["place"])))
        return f"- [{row['date']}, file: {where}] {row['text']}"
    speaker = f"{row['role']}: " if row["kind"] == TURN else ""
    return f"- [{row['date']}] {speaker}{row['text']}"


def _framed(tenant: Tenant, lines: Sequence[str], zone: tzinfo) -> str:
    """The lines as a context frames its own; empty without any."""
    frame = FRAMES.get(tenant.language, ENGLISH).in_zone(zone)
    return "\n".join([OPENING, frame.notice, *lines, CLOSING]) if lines else ""


def _why_nothing(answer: Any, otherwise: str) -> str:
    if answer.restricted:
        return _RESTRICTED
    return otherwise if answer.serve else _OFF
