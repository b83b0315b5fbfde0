"""Sessions: the list, the conversation with its queue, retrying, and deleting after a preview."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar

from django import forms
from django.contrib.admin import SimpleListFilter
from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Prefetch, QuerySet
from django.db.models.functions import Left, Length
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget

from memories import conf
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.lists.export import OF_PERSON
from memories.admin.runs.waits import WaitingListPage, waits_of, when_taken
from memories.admin.site import reasons
from memories.admin.site.mentions import mention
from memories.admin.site.page import VerbForm, address, attempt, render_page, require
from memories.admin.site.reasons import ReasonField
from memories.admin.site.template_tags import TURNS_SHOWN
from memories.admin.site.undo import UndoViews
from memories.admin.site.wording import KINDS, WORK, explain_failure
from memories.admin.trail.authors import names_of
from memories.admin.trail.redactions import sign_redactions
from memories.audit import Actor
from memories.curation.retries import retry_working_memory
from memories.curation.sessions import delete_session, facts_of_session
from memories.curation.turn_authors import CORRECT, correct_author, corrections_of, facts_resting_on, version_of_author
from memories.models import (
    Attachment,
    Author,
    Change,
    ChangeSet,
    Episode,
    ExtractionRun,
    Role,
    Session,
    SessionQueue,
    Turn,
)
from memories.queue import window_queue
from memories.queue.eviction import WindowContents
from memories.queue.session_queue import status_of

TURN_CLIP = 4_000
RUNS_SHOWN = 5
EPISODES_SHOWN = 10
FACTS_SHOWN = 10
CORRECTIONS_SHOWN = 20


class RetrySessionForm(VerbForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        retry_working_memory(session=self.record, actor=actor, now=now)
        done = gettext("%(session)s: its working memory is due now.") % {"session": mention(self.record)}
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


class CorrectAuthorForm(VerbForm):
    """Of a turn of the session: whose words it holds."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    author = forms.ChoiceField(label=_("Whose words"), choices=Author.choices, widget=UnfoldAdminSelectWidget)
    reason = ReasonField(*reasons.WHOSE, help_text=_("Optional; kept with the correction."))

    def __init__(self, data: Any = None, *, record: Session, turn: Turn) -> None:
        self.turn = turn
        super().__init__(data, record=record)

    def values_of(self, record: Session) -> dict[str, Any]:
        return {"version": version_of_author(self.turn), "author": self.turn.known_author}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {name: self.cleaned_data[name] for name in ("author", "reason")}
        correct_author(
            turn_id=self.turn.pk, expected_version=self.cleaned_data["version"], actor=actor, now=now, **given
        )
        return gettext("Turn %(number)d now counts as these words: %(author)s.") % {
            "number": self.turn.number,
            "author": Author(given["author"]).label,
        }

    def leads_to(self) -> str:
        return reverse("admin:memories_session_turn", args=[self.record.pk, self.turn.number])


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


class SessionPage(WaitingListPage, UndoViews):
    undo_verbs = frozenset({CORRECT})
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"delete": DeleteSessionForm, "retry": RetrySessionForm}
    page_template = "memories/session.html"
    csv_columns = (
        *OF_PERSON, "external_id", "agent_id", "turn_count", "token_count", "created_at", "last_turn_at", "ended_at",
        "queue__due_at", "queue__parked_at", "queue__failure",
    )  # fmt: skip
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
            **_conversation(record, request),
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

    @address("<uuid:object_id>/turn/<int:number>/", "turn")
    def turn(self, request: HttpRequest, object_id: uuid.UUID, number: int) -> HttpResponse:
        """A turn of role user: whose words it holds, and what rests on it; posted, an operator's correction."""
        is_posted = request.method == "POST"
        session = self.find(request, str(object_id), may_change=is_posted)
        turn = _turn(session, number)
        if not is_posted:
            return self._show_turn(request, session, turn)
        form = CorrectAuthorForm(request.POST, record=session, turn=turn)
        done, status = attempt(request, form)
        if status == HTTPStatus.OK:
            return self.answer(request, form, done)
        form.turn = turn = _turn(session, number)
        form.see(session)
        return self._show_turn(request, session, turn, tried=form, status=status)

    def _show_turn(
        self,
        request: HttpRequest,
        session: Session,
        turn: Turn,
        *,
        tried: CorrectAuthorForm | None = None,
        status: int = 200,
    ) -> TemplateResponse:
        may_change = self.has_change_permission(request, session)
        queue, corrections = _queue(session), list(corrections_of(turn)[:CORRECTIONS_SHOWN])
        names = names_of(corrections)
        context: dict[str, Any] = {
            "opts": self.opts,
            "original": session,
            "session": session,
            "turn": turn,
            "clip": TURN_CLIP,
            "tried": tried,
            "form": (tried or CorrectAuthorForm(record=session, turn=turn)) if may_change else None,
            "is_passed": queue is not None and turn.number <= queue.extracted_number,
            "corrections": [(one, names.get(one.actor_id, one.get_actor_kind_display())) for one in corrections],
        }
        if request.user.has_perm("memories.view_fact"):
            resting = facts_resting_on(turn)
            context |= {"facts": resting.order_by("-created_at", "-id")[:FACTS_SHOWN], "facts_count": resting.count()}
        title = gettext("Turn %(number)d") % {"number": turn.number}
        return render_page(request, "memories/turn.html", status=status, title=title, **context)

    def changes_of(self, record: uuid.UUID) -> QuerySet[ChangeSet]:
        """They are about the person: those of turns of this session."""
        turns = Turn.objects.filter(session=record).values("pk")
        corrected = Change.objects.filter(change_set=OuterRef("pk"), table=Change.Table.TURN, uuid__in=turns)
        return ChangeSet.objects.filter(Exists(corrected), end_user__sessions=record)

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


def _turn(session: Session, number: int) -> Turn:
    """The turn with this number, of role user, its text clipped. Errors: Http404."""
    turns = _clipped(Turn.objects.filter(session=session, number=number, role=Role.USER))
    found = next(iter(_signed(turns)), None)
    if found is None:
        raise Http404
    return found


def _conversation(session: Session, request: HttpRequest) -> dict[str, Any]:
    """The page of turns that is asked for, of all authors or of one."""
    asked, author = request.GET.get("page"), request.GET.get("author", "")
    if author not in Author.values:
        author = ""
    page = _stretch(session, author, request.GET) if author else _page(session, asked)
    return {
        "page": page,
        "author": author,
        "authors": [("", gettext("All")), *Author.choices],
    }


class _ByNumber:
    """A session's turns for Django's paginator. A turn's number is its position, even if earlier turns are deleted."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __len__(self) -> int:
        return self.session.turn_count

    def __getitem__(self, span: slice) -> Any:
        turns = Turn.objects.filter(session=self.session, number__gt=span.start, number__lte=span.stop)
        # Read where it is shown: the page of a deletion shows no turns.
        return SimpleLazyObject(lambda: _signed(_clipped(turns)))


def _clipped(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """The database clips the text: a message may have a megabyte."""
    clipped = turns.annotate(start=Left("content", TURN_CLIP), length=Length("content"))
    files = Prefetch("attachments", Attachment.objects.defer("content").order_by("pk"), to_attr="files")
    return clipped.defer("content", "parts").order_by("number").prefetch_related(files)


def _signed(turns: QuerySet[Turn]) -> list[Turn]:
    shown = list(turns)
    sign_redactions(shown)
    return shown


def _page(session: Session, number: str | None) -> Page[Turn]:
    """The requested page; without a number that of the first turn that is not deleted."""
    pages: Any = Paginator(_ByNumber(session), TURNS_SHOWN)  # type: ignore[arg-type]  # it has all that is called
    return pages.get_page(number or session.deleted_number // TURNS_SHOWN + 1)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Stretch:
    """Some of an author's turns in order. Nobody counts the others: in a long session that would read all of them."""

    turns: list[Turn]
    has_earlier: bool
    has_later: bool

    def __iter__(self) -> Iterator[Turn]:
        return iter(self.turns)


def _stretch(session: Session, author: str, query: Any) -> _Stretch:
    """The first turns that hold this author's words, those `after` a number, or the last of those `before` one."""
    turns = _clipped(Turn.objects.filter(session=session).of_author(author))
    after, before = (_number(query.get(name, "")) for name in ("after", "before"))
    if before is not None:
        found = list(turns.filter(number__lt=before).order_by("-number")[: TURNS_SHOWN + 1])
        shown, has_earlier, has_later = found[:TURNS_SHOWN][::-1], len(found) > TURNS_SHOWN, True
    else:
        found = list(turns.filter(number__gt=after or 0)[: TURNS_SHOWN + 1])
        shown, has_earlier, has_later = found[:TURNS_SHOWN], bool(after), len(found) > TURNS_SHOWN
    sign_redactions(shown)
    return _Stretch(shown, has_earlier and bool(shown), has_later and bool(shown))


def _number(text: str) -> int | None:
    """A turn's number as an address has it; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _queue(session: Session) -> SessionQueue | None:
    # A session has no row until its first extraction is scheduled.
    queue: SessionQueue | None = getattr(session, "queue", None)
    if queue is not None:
        queue.session = session
    return queue
