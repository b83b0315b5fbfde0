"""Sessions: the list, and the conversation turn by turn with what is still to be extracted; they can be deleted."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.db.models.functions import Left, Length
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf, curation
from memories.admin import cells
from memories.admin.columns import column
from memories.admin.naming import called
from memories.admin.page import VerbForm
from memories.admin.session_deletion import DeletablePage
from memories.admin.template_tags import TURNS_SHOWN
from memories.admin.wording import KINDS, WORK
from memories.audit import (
    Actor,
)
from memories.models import (
    Episode,
    ExtractionRun,
    Session,
    SessionQueue,
    Turn,
)
from memories.pipeline import (
    working_memory,
)
from memories.pipeline.debounce import status_of
from memories.pipeline.leaving import Window

TURN_CLIP = 4_000
RUNS_SHOWN = 5
EPISODES_SHOWN = 10


class RetryForm(VerbForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.retry_working_memory(session=self.record, actor=actor, now=now)
        said = gettext("%(session)s: its working memory is due now; a worker takes it within two seconds.")
        return said % {"session": called(self.record)}


class WindowFilter(SimpleListFilter):
    """Sessions whose working memory nobody tries any more."""

    title = _("working memory")
    parameter_name = "window"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("parked", gettext("Parked"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        return queryset.filter(working_memory__parked_at__isnull=False) if self.value() == "parked" else queryset


class SessionPage(DeletablePage):
    verbs: ClassVar[dict[str, type[VerbForm]]] = {**DeletablePage.verbs, "retry": RetryForm}
    page_template = "memories/session.html"
    list_display = ("session", "person", "turn_count", "token_count", "state", "last_turn", "ended")
    list_filter = ("tenant", WindowFilter)
    list_select_related = ("end_user", "tenant", "queue", "working_memory")
    search_fields = ("external_id", "agent_id")
    search_help_text = _("Search by session or agent")
    ordering = ("-last_turn_at", "-id")
    list_links = ((_("Parked work"), "refresh", "admin:parked", "memories.view_session"),)
    empty_title = _("No sessions yet")
    empty_hint = _("A session begins with the first turn that an application posts to it.")

    @column(_("Session"))
    def session(self, session: Session) -> SafeString:
        return cells.two_lines(session.external_id, session.agent_id)

    @column(_("End user"))
    def person(self, session: Session) -> SafeString:
        return cells.person(session.end_user)

    @column(_("Extraction"), label=KINDS)
    def state(self, session: Session) -> tuple[str, str]:
        status = status_of(_queue(session), now=timezone.now()).status
        return status, str(WORK.get(status, status))

    @column(_("Last turn"), ordering="last_turn_at")
    def last_turn(self, session: Session) -> SafeString | str:
        return cells.moment(session.last_turn_at)

    @column(_("Ended"), ordering="ended_at")
    def ended(self, session: Session) -> SafeString | str:
        return cells.moment(session.ended_at)

    def gather(self, request: HttpRequest, record: Session) -> dict[str, Any]:
        queue = _queue(record)
        shown: dict[str, Any] = {
            "session": record,
            "queue": queue,
            "state": status_of(queue, now=timezone.now()),
            "memory": record.working_memory,
            "window": Window.of(record, record.working_memory),
            "window_state": working_memory.status_of(record.working_memory, now=timezone.now()),
            "rules": conf.rules(record.tenant),
            "page": _page(record, request.GET.get("page")),
            "clip": TURN_CLIP,
            "may_delete": self.may_delete(request),
        }
        if request.user.has_perm("memories.view_extractionrun"):
            shown["runs"] = ExtractionRun.objects.filter(session=record)[:RUNS_SHOWN]
        if request.user.has_perm("memories.view_episode"):
            shown["episodes"] = Episode.objects.filter(session=record).order_by("-first_number")[:EPISODES_SHOWN]
        return shown


class _ByNumber:
    """A session's turns as a paginator takes them: each at the place of its number, also when those before are gone."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __len__(self) -> int:
        return self.session.turn_count

    def __getitem__(self, span: slice) -> QuerySet[Turn]:
        return _turns(self.session).filter(number__gt=span.start, number__lte=span.stop)


def _page(session: Session, asked: str | None) -> Page[Turn]:
    """The page that was asked for; without one that of the first turn that is kept."""
    pages: Any = Paginator(_ByNumber(session), TURNS_SHOWN)  # type: ignore[arg-type]  # all that it calls is there
    found: Page[Turn] = pages.get_page(asked or session.deleted_number // TURNS_SHOWN + 1)
    return found


def _turns(session: Session) -> QuerySet[Turn]:
    """The turns in order, the text of each clipped in the database: a message may hold a megabyte."""
    clipped = Turn.objects.filter(session=session).annotate(start=Left("content", TURN_CLIP), length=Length("content"))
    return clipped.defer("content", "parts").order_by("number")


def _queue(session: Session) -> SessionQueue | None:
    # The row is missing only while a session has never been armed.
    queue: SessionQueue | None = getattr(session, "queue", None)
    if queue is not None:
        queue.session = session
    return queue
