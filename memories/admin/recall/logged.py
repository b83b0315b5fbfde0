"""The log of contexts: the list, and what was in one of them with what became of it since."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import within
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.people.views import MEMORY
from memories.admin.recall.memories import RecalledMemory, memory_of, rows_of
from memories.admin.site.page import RecordPage, require
from memories.admin.site.segments import Segment, diff
from memories.models import (
    APIKey,
    Change,
    ContextLog,
    EndUser,
    Episode,
    FactRevision,
    LoggedContext,
    ProfileRevision,
    SentBlock,
    Session,
    Status,
)

# What became of a memory → its words and the colour of its label.
OUTCOMES: Mapping[str, tuple[Promise, str]] = {
    "same": (_("Unchanged"), ""),
    "changed": (_("Changed since"), "info"),
    "corrected": (_("Text changed since"), "warning"),
    "superseded": (_("Superseded since"), "warning"),
    "redacted": (_("Redacted since"), "danger"),
    "faded": (_("Faded since"), "danger"),
    "trashed": (_("Forgotten since"), "danger"),
    "archived": (_("Archived since"), "warning"),
    "deleted": (_("Deleted since"), "danger"),
}
VIEW = "memories.view_loggedcontext"
COMPARED_WITH = 25
# The gateway keeps what it sent once the endpoint answers.
KEPT_WITHIN = timedelta(minutes=10)
# Verbs of the nightly pass.
_FADING = ("fade", "expire")


@dataclass(frozen=True)
class ServedMemory:
    """A memory of a logged context: as it was then, and what became of it. `segments`: the texts then and now, where
    they differ."""

    memory: RecalledMemory
    outcome: str
    text: str
    segments: Sequence[Segment] = ()

    @property
    def label(self) -> Promise:
        return OUTCOMES[self.outcome][0]

    @property
    def colour(self) -> str:
        return OUTCOMES[self.outcome][1]


def served(logged: LoggedContext) -> list[ServedMemory]:
    """What was in it, in its order; at most a query for each kind of memory and of history."""
    keys = [((item["kind"], uuid.UUID(item["id"])), item["score"]) for item in logged.items]
    person = logged.end_user.merged_into or logged.end_user
    rows = rows_of(person, (key for key, _score in keys))
    history = _History.of(rows, at=logged.created_at)
    found = []
    for (kind, row_id), score in keys:
        memory = memory_of(person, kind, row_id, rows.get((kind, row_id)), score=score)
        outcome, text = history.outcome_of(memory)
        differs = memory.row and text != memory.text
        found.append(ServedMemory(memory, outcome, text, diff(text, memory.text) if differs else ()))
    return found


def sent_of(logged: LoggedContext, person: EndUser) -> list[SentBlock]:
    """The blocks of it that the gateway keeps for later requests of the conversation, in the order of a prompt."""
    moments = logged.created_at, logged.created_at + KEPT_WITHIN
    rows = SentBlock.objects.filter(
        tenant=person.tenant, end_user=person, agent_id=logged.agent_id, sent_at__range=moments
    )
    held = {item["id"] for item in logged.items}
    newest = rows.exclude(text="").order_by("kind", "sent_at", "pk")[:COMPARED_WITH]
    return [block for block in newest if held.issuperset(item["id"] for item in block.items)]


@dataclass(frozen=True)
class ComparedMemory:
    """A memory that was in a logged context (`then`), is in today's (`is_now`), or both; `text` is that of then."""

    memory: RecalledMemory
    text: str
    then: ServedMemory | None
    is_now: bool


def compare(logged: LoggedContext, now: Iterable[RecalledMemory]) -> list[ComparedMemory]:
    """What was in the logged context, in its order, and then what is new in today's."""
    today = {(memory.kind, memory.id): memory for memory in now}
    then = [
        ComparedMemory(one.memory, one.text, one, today.pop((one.memory.kind, one.memory.id), None) is not None)
        for one in served(logged)
    ]
    return [*then, *(ComparedMemory(memory, memory.text, None, is_now=True) for memory in today.values())]


def newest_of(person: EndUser, operator: Any) -> list[LoggedContext]:
    """The contexts that "Why recalled?" offers to compare with."""
    if not operator.has_perm(VIEW):
        return []
    rows = LoggedContext.objects.filter(end_user__in=EndUser.objects.with_aliases(person).values("pk"))
    return list(rows.defer("items", "memory", "rests_on")[:COMPARED_WITH])


def last_up_to(person: EndUser, at: datetime, *, agent_id: str = "") -> LoggedContext | None:
    """The last context that was served of the person up to the moment, to the agent if one is named."""
    rows = LoggedContext.objects.filter(
        end_user__in=EndUser.objects.with_aliases(person).values("pk"), created_at__lte=at
    )
    if agent_id:
        rows = rows.filter(agent_id=agent_id)
    # What shows it asks whose it is.
    found = rows.select_related("tenant", "end_user__tenant", "end_user__merged_into__tenant")
    return found.order_by("-created_at", "-pk").first()


def find_logged(pk: uuid.UUID | None, operator: Any) -> LoggedContext | None:
    """The logged context with this id, if the operator may see it."""
    if pk is None or not operator.has_perm(VIEW):
        return None
    rows = LoggedContext.objects.select_related("tenant", "end_user__tenant", "end_user__merged_into__tenant")
    found: LoggedContext | None = within(operator, rows).filter(pk=pk).first()
    return found


@dataclass(frozen=True)
class _History:
    """The versions of facts and of sections of the profile, oldest first, what episodes said at the moment if they say
    something else today, and the moment that is looked at."""

    facts: Mapping[uuid.UUID, Sequence[FactRevision]]
    sections: Mapping[tuple[Any, str, str], Sequence[ProfileRevision]]
    summaries: Mapping[uuid.UUID, str]
    at: datetime

    @classmethod
    def of(cls, rows: Mapping[tuple[str, uuid.UUID], Any], *, at: datetime) -> "_History":
        facts = defaultdict[uuid.UUID, list[FactRevision]](list)
        sections = defaultdict[tuple[Any, str, str], list[ProfileRevision]](list)
        ids = [row_id for kind, row_id in rows if kind == "fact"]
        if ids:
            for revision in FactRevision.objects.filter(fact__in=ids).order_by("fact", "version"):
                facts[revision.fact_id].append(revision)
        profile = [row for (kind, _id), row in rows.items() if kind == "profile"]
        if profile:
            found = ProfileRevision.objects.filter(
                end_user__in={row.end_user_id for row in profile},
                section__in={row.section for row in profile},
                version__isnull=False,
            )
            for written in found.order_by("version"):
                sections[written.end_user_id, written.agent_id, written.section].append(written)
        return cls(facts, sections, _summaries([row for (kind, _id), row in rows.items() if kind == "episode"], at), at)

    def outcome_of(self, memory: RecalledMemory) -> tuple[str, str]:
        """What became of it, and its text at the moment."""
        row = memory.row
        if row is None:
            return "deleted", ""
        if memory.kind == "fact":
            return self._outcome_of_fact(memory)
        if memory.kind == "profile":
            versions = self.sections.get((row.end_user_id, row.agent_id, row.section), ())
            text = self._text_then(versions, lambda one: one.before, lambda one: one.after, memory.text)
            return ("same" if text == memory.text else "corrected"), text
        if memory.kind == "turn":
            return ("redacted" if row.redacted_at and row.redacted_at > self.at else "same"), memory.text
        if memory.kind == "episode":
            return self._outcome_of_episode(memory)
        # What an agent noted is never changed, nor is a fact of a group, nor a passage of a file.
        changed_at = getattr(row, "updated_at", None)
        is_changed = changed_at is not None and changed_at > self.at
        return ("trashed" if getattr(row, "trashed_at", None) else "changed" if is_changed else "same"), memory.text

    def _outcome_of_episode(self, memory: RecalledMemory) -> tuple[str, str]:
        text = self.summaries.get(memory.id, memory.text)
        if memory.row.status == Status.TRASHED:
            return "trashed", text
        if text != memory.text:
            return "corrected", text
        return ("changed" if memory.row.updated_at > self.at else "same"), text

    def _outcome_of_fact(self, memory: RecalledMemory) -> tuple[str, str]:
        fact, versions = memory.row, self.facts.get(memory.id, ())
        text = self._text_then(
            versions, lambda one: one.before.get("content"), lambda one: one.after.get("content"), memory.text
        )
        since = [one.verb for one in versions if one.created_at > self.at]
        if fact.status == Status.TRASHED:
            return ("faded" if since and since[-1] in _FADING else "trashed"), text
        if fact.status == Status.SUPERSEDED:
            return "superseded", text
        if fact.status == Status.ARCHIVED:
            return "archived", text
        if text != memory.text:
            return "corrected", text
        return ("changed" if since else "same"), text

    def _text_then(self, versions: Iterable[Any], before: Any, after: Any, now: str) -> str:
        """What the last version up to the moment left, else what the first one since replaced, else today's."""
        text: str | None = None
        for one in versions:
            if one.created_at <= self.at:
                text = after(one)
            elif text is None:
                text = before(one)
        return now if text is None else text


def _summaries(episodes: Iterable[Episode], at: datetime) -> dict[uuid.UUID, str]:
    """What these said at the moment, if somebody has rewritten them since: what the first rewriting found. Every verb
    on an episode, an undo, too, keeps what it changed (curation/episodes.py)."""
    since = [row.pk for row in episodes if row.updated_at > at]
    found: dict[uuid.UUID, str] = {}
    if since:
        changes = Change.objects.filter(table=Change.Table.EPISODE, uuid__in=since, change_set__created_at__gt=at)
        for row_id, before in changes.order_by("pk").values_list("uuid", "before"):
            if row_id and "summary" in before:
                found.setdefault(row_id, before["summary"])
    return found


class LoggedContextPage(RecordPage):
    page_template = "memories/logged_context.html"
    list_display = ("time", "person", "agent", "memories_held", "tokens", "question", "took")
    list_filter = ("tenant",)
    linked_by = ("end_user",)
    list_select_related = ("end_user__merged_into", "tenant")
    search_fields = ("agent_id", "revision")
    search_help_text = _("Search by agent, or by the revision of an answer")
    ordering = ("-created_at", "-id")
    time = moment_column(_("Time"), "created_at")
    empty_title = _("No contexts logged yet")
    empty_hint = _("Each POST /api/v1/context is listed here, unless its tenant's log of contexts is off.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[LoggedContext]:
        rows: QuerySet[LoggedContext] = super().get_queryset(request)
        is_list = request.resolver_match is not None and not request.resolver_match.kwargs
        return rows.defer("query", "memory", "rests_on") if is_list else rows

    def find(self, request: HttpRequest, object_id: str, *, may_change: bool) -> Any:
        """Its page tells what was in memories of each kind. Errors: PermissionDenied, Http404."""
        require(request, *MEMORY)
        return super().find(request, object_id, may_change=may_change)

    @column(_("End user"))
    def person(self, logged: LoggedContext) -> SafeString:
        return cells.person(logged.end_user)

    @column(_("Agent"))
    def agent(self, logged: LoggedContext) -> str:
        return logged.agent_id or "–"

    @column(_("Memories"))
    def memories_held(self, logged: LoggedContext) -> int:
        return len(logged.items)

    @column(_("Tokens"))
    def tokens(self, logged: LoggedContext) -> int:
        return logged.token_count

    @column(_("Question"))
    def question(self, logged: LoggedContext) -> str:
        return gettext("Yes") if logged.asked else "–"

    @column(_("Took"))
    def took(self, logged: LoggedContext) -> str:
        return f"{logged.took_ms:,} ms"

    def gather(self, request: HttpRequest, record: LoggedContext) -> dict[str, Any]:
        held = served(record)
        person: EndUser = record.end_user.merged_into or record.end_user
        return {
            "logged": record,
            "blocks": sent_of(record, person),
            "person": person,
            "served": held,
            "changed": sum(one.outcome != "same" for one in held),
            "session": Session.objects.filter(pk=record.session_id).first() if record.session_id else None,
            "key": APIKey.objects.filter(pk=record.key_id).first() if record.key_id else None,
            "keeps_texts": record.tenant.context_log == ContextLog.TEXTS,
        }
