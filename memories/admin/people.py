"""End users: the list, and a page with all that is known of one person."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldBooleanSwitchWidget

from memories import curation
from memories.admin import cells, timeline
from memories.admin.case_board import cards
from memories.admin.columns import column
from memories.admin.merging import MergingPages
from memories.admin.naming import called
from memories.admin.page import VerbForm
from memories.admin.person_fields import RecordFields
from memories.admin.person_views import MEMORY, tabs
from memories.admin.profile_page import ProfilePages, sections
from memories.admin.seen import SeenPages
from memories.admin.sessions_of import SessionsOfPerson
from memories.admin.timeline_edits import days_of
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.models import EndUser, Episode, EpisodeStatus, Fact, Session, Status
from memories.privacy import cases


class PersonForm(RecordFields, VerbForm):
    """What an operator may set of a person; never the ids."""

    capture = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=gettext_lazy("Store turns"),
        help_text=gettext_lazy("Off: turns are not stored."),
    )
    serve = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=gettext_lazy("Serve memory"),
        help_text=gettext_lazy("Off: contexts are empty."),
    )

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, record: EndUser) -> None:
        super().__init__(data if data is None else data.copy(), record=record)
        for name, field in self.fields.items():
            field.initial = curation.seen_of_person(record) if name == "seen" else getattr(record, name)

    def see(self, record: EndUser) -> None:
        super().see(record)
        self.data["seen"] = curation.seen_of_person(record)  # type: ignore[index]  # a copy of ours

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        seen = self.cleaned_data.pop("seen") or None
        changes = {name: value for name, value in self.cleaned_data.items() if value != getattr(self.record, name)}
        if not changes:
            return _("Nothing was changed.")
        person = curation.update_person(end_user=self.record, changes=changes, seen=seen, actor=actor, now=now)
        cut = any(value != getattr(person, name) for name, value in changes.items())
        said = _("%(person)s is saved.") % {"person": called(person)}
        return f"{said}{CUT_OUT if cut else ''}"


class PersonPage(MergingPages, SeenPages, ProfilePages, SessionsOfPerson):
    page_template = "memories/person_timeline.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"update": PersonForm, **ProfilePages.verbs}
    list_display = ("person", "tenant", "facts_active", "sessions_held", "seen")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("external_id", "display_name")
    search_help_text = gettext_lazy("Search by id or name")
    ordering = ("-last_seen_at",)
    empty_title = gettext_lazy("No end users yet")
    empty_hint = gettext_lazy(
        "They appear when an application posts their turns: make it an API key, then POST /api/v1/turns."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[EndUser]:
        people: QuerySet[EndUser] = super().get_queryset(request)
        return people.annotate(
            facts_held=_count(Fact.objects.filter(status=Status.ACTIVE)), sessions_count=_count(Session.objects.all())
        )

    @column(gettext_lazy("End user"))
    def person(self, person: EndUser) -> SafeString:
        return cells.person(person)

    @column(gettext_lazy("Active facts"))
    def facts_active(self, person: Any) -> int:
        return int(person.facts_held)

    @column(gettext_lazy("Sessions"))
    def sessions_held(self, person: Any) -> int:
        return int(person.sessions_count)

    @column(gettext_lazy("Last seen"), ordering="last_seen_at")
    def seen(self, person: EndUser) -> SafeString | str:
        return cells.moment(person.last_seen_at)

    def gather(self, request: HttpRequest, record: EndUser) -> dict[str, Any]:
        """Who it is and how much there is of them: what all views of a person show beside their own."""
        may = request.user.has_perm
        shown: dict[str, Any] = {"person": record, "tabs": tabs(may), "may_recall": all(map(may, MEMORY))}
        if may("memories.view_fact"):
            profile = sections(record)
            written = any(section.row and section.row.summary for section in profile)
            shown |= {"profile": profile, "written": written, **_fact_counts(record)}
        if may("memories.view_episode"):
            shown["episode_count"] = Episode.objects.filter(end_user=record, status=EpisodeStatus.ACTIVE).count()
        if may("memories.view_session"):
            shown |= record.sessions.aggregate(turn_count=Sum("turn_count", default=0), session_count=Count("pk"))
        if may("memories.view_privacycase"):
            shown["open_cases"] = cards(cases.cases_of(record).open(), now=timezone.now())
        return shown

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The timeline, unless it is another view of the person; what lies further back alone when a script asks."""
        page = super().show(request, record, tried=tried, status=status)
        if page.template_name != self.page_template:
            return page
        wish = timeline.Wish.of(request.GET)
        sources = timeline.sources_for(request.user.has_perm)
        leaf = timeline.read(record, sources, wish)
        given = {"wish": wish, "kinds": _kinds(sources), "days": days_of(leaf), "older": leaf.older}
        given["clip"] = timeline.CLIP
        page.context_data = {**(page.context_data or {}), "tab": "timeline", **given}
        if request.headers.get("X-Fragment") == "timeline":
            page.template_name = "memories/timeline_days.html"
        return page


def _count(rows: QuerySet[Any]) -> Coalesce:
    """The number of rows of each person, as a subquery: computed for the 25 that are shown."""
    mine = rows.filter(end_user=OuterRef("pk")).order_by().values("end_user").annotate(number=Count("pk"))
    return Coalesce(Subquery(mine.values("number"), output_field=IntegerField()), 0)


def _fact_counts(person: EndUser) -> dict[str, Any]:
    """How many facts there are by status; of those that are neither active nor pending also with their labels."""
    counts = Fact.objects.filter(end_user=person).order_by().values_list("status").annotate(number=Count("pk"))
    found = dict(counts)
    live = (Status.ACTIVE, Status.PENDING)
    rest = [(one.value, one.label, found[one]) for one in Status if one in found and one not in live]
    return {"fact_counts": found, "fact_rest": rest}


def _kinds(sources: Iterable[timeline.Source]) -> list[tuple[str, str]]:
    """The filters that lead to something somebody may see; none where there is but one."""
    seen = {source.kind for source in sources}
    kinds = [(kind, str(label)) for kind, label in timeline.KINDS.items() if not kind or kind in seen]
    return kinds if len(kinds) > 2 else []
