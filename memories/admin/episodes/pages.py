"""Episodes: the list, the page, and the verbs edit, pin, unpin, forget and restore."""

from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.episodes import forms
from memories.admin.episodes.detail import events_of, flaws_of, turns_of, why_it_stays
from memories.admin.facts.decay_curve import curve_of_episode
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.lists.export import OF_PERSON
from memories.admin.site.page import VerbForm, verbs_of
from memories.admin.site.undo import UndoViews
from memories.admin.site.wording import KINDS
from memories.models import Episode, EpisodeStatus, ReviewItem
from memories.verbs import undone_of


class QualityFilter(SimpleListFilter):
    title = _("quality")
    parameter_name = "quality"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("good", gettext("Good")), ("poor", gettext("Poor"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Episode]) -> QuerySet[Episode]:
        # By the hub's own threshold: a list may show many tenants.
        least = conf.hub_rules().episode_quality
        chosen = {"good": queryset.filter(quality__gte=least), "poor": queryset.filter(quality__lt=least)}
        return chosen.get(self.value() or "", queryset)


class EpisodePage(UndoViews):
    page_template = "memories/episode.html"
    undo_field = "episode"
    undo_verbs = undone_of("Episode")
    verbs: ClassVar[dict[str, type[VerbForm]]] = verbs_of(forms)
    csv_columns = (
        *OF_PERSON, "session_id", "summary", "status", "importance", "quality", "pinned", "first_number", "last_number",
        "ended_at", "forget_at",
    )  # fmt: skip
    list_display = ("statement", "person", "state", "importance_shown", "quality_shown", "ended")
    list_filter = ("status", QualityFilter, "tenant")
    linked_by = ("end_user", "session")
    list_select_related = ("end_user", "tenant", "session")
    search_fields = ("summary", "end_user__external_id")
    search_help_text = _("Search summary or end user")
    ordering = ("-ended_at", "-id")
    empty_title = _("No episodes yet")
    empty_hint = _("A session is summed up when its turns leave working memory, when it ends, or when it falls idle.")

    @column(_("Episode"))
    def statement(self, episode: Episode) -> SafeString:
        return cells.statement(episode.summary)

    @column(_("End user"))
    def person(self, episode: Episode) -> SafeString:
        return cells.person(episode.end_user)

    @column(_("Status"), label=KINDS, ordering="status")
    def state(self, episode: Episode) -> tuple[str, str]:
        return episode.status, episode.get_status_display()

    @column(_("Importance"), ordering="importance")
    def importance_shown(self, episode: Episode) -> SafeString:
        return cells.meter(episode.importance)

    @column(_("Quality"), ordering="quality")
    def quality_shown(self, episode: Episode) -> SafeString:
        return cells.meter(episode.quality)

    fades = moment_column(_("Fades"), "forget_at")

    @column(_("Happened"), ordering="ended_at")
    def ended(self, episode: Episode) -> SafeString | str:
        return cells.moment(episode.ended_at)

    def gather(self, request: HttpRequest, record: Episode) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "episode": record,
            "live": record.status != EpisodeStatus.TRASHED,
            "flaws": flaws_of(record.flaws),
            "because": why_it_stays(record),
            "events": events_of(record),
            "curve": curve_of_episode(record, now=timezone.now()),
            "waiting": ReviewItem.objects.waiting().filter(episode=record),
        }
        if request.user.has_perm("memories.view_session"):
            shown["range"] = turns_of(record)
        return shown
