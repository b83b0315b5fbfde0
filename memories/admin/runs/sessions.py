"""Sessions: the list, the conversation with its queue, retrying, and deleting after a preview."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib.admin import SimpleListFilter
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.db.models.functions import Left, Length
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.runs.waits import WaitingListPage, waits_of, when_taken
from memories.admin.site.naming import called
from memories.admin.site.page import VerbForm, require
from memories.admin.site.template_tags import TURNS_SHOWN
from memories.admin.site.wording import KINDS, WORK, explain_failure
from memories.admin.trail.redactions import sign_redactions
from memories.audit import Actor
from memories.curation.retries import retry_working_memory
from memories.curation.sessions import delete_session, facts_of_session
from memories.models import Episode, ExtractionRun, Session, SessionQueue, Turn
from memories.queue import window_queue
from memories.queue.eviction import WindowContents
from memories.queue.session_queue import status_of

TURN_CLIP = 4_000
RUNS_SHOWN = 5
EPISODES_SHOWN = 10
FACTS_SHOWN = 10


class RetrySessionForm(VerbForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        retry_working_memory(session=self.record, actor=actor, now=now)
        done = gettext("%(session)s: its working memory is due now.") % {"session": called(self.record)}
        return f"{done} {when_taken(self.record.tenant, now=now)}"


class DeleteSessionForm(VerbForm):
    needs_permissions = ("memories.delete_session",)
    needs_fresh_password = True
    # The number of turns that the operator saw. If a turn has come since, the page is shown again.
    turns = forms.IntegerField(widget=forms.HiddenInput)

    def values_of(self, record: Session) -> dict[str, Any]:
        return {"turns": record.turn_count}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        turns = self.cleaned_data["turns"]
        done = f"{self.record} is deleted with its turns and what rested on them alone."
        delete_session(session_id=self.record.pk, tenant=None, expected_turns=turns, actor=actor, now=now)
        return done

    def leads_to(self) -> str:
        return reverse("admin:memories_session_changelist")


PARKED = "parked"


class _ParkedFilter(SimpleListFilter):
    """Sessions whose work is parked: all of them, or those that failed for the reason in a link ("parked:<code>")."""

    work: ClassVar[str]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        value, choices = request.GET.get(str(self.parameter_name), ""), [(PARKED, gettext("Parked"))]
        parked, colon, failure = value.partition(":")
        return [*choices, (value, explain_failure(failure) or failure)] if parked == PARKED and colon else choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        parked, colon, failure = (self.value() or "").partition(":")
        if parked != PARKED:
            return queryset
        rows = queryset.filter(**{f"{self.work}__parked_at__isnull": False})
        return rows.filter(**{f"{self.work}__failure": failure}) if colon else rows


class QueueFilter(_ParkedFilter):
    title, parameter_name, work = _("extraction"), "queue", "queue"


class WindowFilter(_ParkedFilter):
    title, parameter_name, work = _("working memory"), "window", "working_memory"


class SessionPage(WaitingListPage):
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"delete": DeleteSessionForm, "retry": RetrySessionForm}
    page_template = "memories/session.html"
    list_display = ("session", "person", "turn_count", "token_count", "state", "last_turn", "ended")
    list_filter = ("tenant", QueueFilter, WindowFilter)
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant", "queue", "working_memory")
    search_fields = ("external_id", "agent_id")
    search_help_text = _("Search by session or agent")
    ordering = ("-last_turn_at", "-id")
    list_links = ((_("Parked work"), "refresh", "admin:parked", "memories.view_session"),)
    last_turn = moment_column(_("Last turn"), "last_turn_at")
    ended = moment_column(_("Ended"), "ended_at")
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

    def gather(self, request: HttpRequest, record: Session) -> dict[str, Any]:
        queue = _queue(record)
        context: dict[str, Any] = {
            "session": record,
            "queue": queue,
            "state": status_of(queue, now=timezone.now()),
            "memory": record.working_memory,
            "window": WindowContents.of(record, record.working_memory),
            "window_state": window_queue.status_of(record.working_memory, now=timezone.now()),
            "rules": conf.rules(record.tenant),
            "page": _page(record, request.GET.get("page")),
            "clip": TURN_CLIP,
            **waits_of(record.tenant, now=timezone.now()),
            "may_delete": self.has_change_permission(request)
            and request.user.has_perms(DeleteSessionForm.needs_permissions),
        }
        if request.user.has_perm("memories.view_extractionrun"):
            context["runs"] = ExtractionRun.objects.filter(session=record)[:RUNS_SHOWN]
        if request.user.has_perm("memories.view_episode"):
            context["episodes"] = Episode.objects.filter(session=record).order_by("-first_number")[:EPISODES_SHOWN]
        return context

    def carry_out(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """As for every verb, but a GET of `delete` shows the preview."""
        if verb == "delete" and request.method != "POST":
            require(request, *DeleteSessionForm.needs_permissions)
            return self._preview_deletion(super().show(request, self.find(request, object_id, may_change=True)))
        return super().carry_out(request, object_id, verb)

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The conversation, or the preview again if deleting failed."""
        page = super().show(request, record, tried=tried, status=status)
        return self._preview_deletion(page) if isinstance(tried, DeleteSessionForm) else page

    def _preview_deletion(self, page: TemplateResponse) -> TemplateResponse:
        """Turn the page of a session into the one that shows what would be deleted with it."""
        context = page.context_data or {}
        session: Session = context["session"]
        deleted, kept = facts_of_session(session)
        page.template_name = "memories/session_delete.html"
        page.context_data = {
            **context,
            "episodes_going": session.episodes.count(),
            "going": deleted.order_by("-created_at", "-id")[:FACTS_SHOWN],
            "going_count": deleted.count(),
            "staying_count": kept.count(),
        }
        return page


class _ByNumber:
    """A session's turns for Django's paginator. A turn's number is its position, even if earlier turns are deleted."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __len__(self) -> int:
        return self.session.turn_count

    def __getitem__(self, span: slice) -> Any:
        turns = Turn.objects.filter(session=self.session, number__gt=span.start, number__lte=span.stop)
        # The database clips the text: a message may have a megabyte.
        clipped = turns.annotate(start=Left("content", TURN_CLIP), length=Length("content"))
        # Read where it is shown: the page of a deletion shows no turns.
        return SimpleLazyObject(lambda: _signed(clipped.defer("content", "parts").order_by("number")))


def _signed(turns: QuerySet[Turn]) -> list[Turn]:
    shown = list(turns)
    sign_redactions(shown)
    return shown


def _page(session: Session, number: str | None) -> Page[Turn]:
    """The requested page; without a number that of the first turn that is not deleted."""
    pages: Any = Paginator(_ByNumber(session), TURNS_SHOWN)  # type: ignore[arg-type]  # it has all that is called
    return pages.get_page(number or session.deleted_number // TURNS_SHOWN + 1)  # type: ignore[no-any-return]


def _queue(session: Session) -> SessionQueue | None:
    # A session has no row until its first extraction is scheduled.
    queue: SessionQueue | None = getattr(session, "queue", None)
    if queue is not None:
        queue.session = session
    return queue
