"""Skills: the list, and the page of one: what waits beside what is in use, its trials and its versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db.models import Count, F, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.files.comparing import VersionComparison, compare
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage, VerbForm
from memories.admin.skills import forms
from memories.curation.skills import deciding
from memories.models import Skill, SkillEvidence, SkillText, SkillTrial, SkillVersion
from memories.skills import rendering, serving, trials
from memories.skills.comparing import Rate
from memories.skills.trials import Figures

COLOURS = {"serving": "success", "proposed": "warning", "withdrawn": "danger", "rejected": "danger"}
VERSION_COLOURS = {"proposed": "warning", "served": "success", "rejected": "danger"}
# Versions, and trials, that the page shows.
SHOWN = 30
_Arm, _Outcome = SkillTrial.Arm, trials.Outcome


@dataclass(frozen=True)
class ShownText:
    """A text with the trajectories that it rests on."""

    text: SkillText
    rests_on: Sequence[Any]


@dataclass(frozen=True)
class ShownVersion:
    version: SkillVersion
    figures: Figures
    with_it: str
    without: str
    may_serve: bool


class SkillPage(RecordPage):
    page_template = "memories/skill.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "approve": forms.ApproveForm,
        "reject": forms.RejectForm,
        "edit": forms.EditForm,
        "undo": forms.UndoForm,
        "withdraw": forms.WithdrawForm,
        "leave": forms.LeaveForm,
        "serve": forms.ServeVersionForm,
        "share": forms.ShareForm,
    }
    list_display = ("named", "state", "served_to", "succeeded", "share_shown", "changed")
    list_filter = ("status", "scope", "tenant")
    list_select_related = ("tenant", "group")
    search_fields = ("name", "family", "agent_id")
    search_help_text = _("Search by name, kind of task or agent")
    ordering = ("-changed_at", "-id")
    empty_title = _("No skills yet")
    empty_hint = _("Switch skills on in the settings of a tenant. They are proposed from trajectories that succeeded.")
    changed = moment_column(_("Changed"), "changed_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Skill]:
        rows: QuerySet[Skill] = super().get_queryset(request)
        of_served = Q(versions__number=F("served"), versions__trials__arm=_Arm.SERVED)
        known = of_served & Q(versions__trials__outcome__in=trials.KNOWN)
        succeeded = of_served & Q(versions__trials__outcome=_Outcome.SUCCEEDED)
        return rows.annotate(
            tried=Count("versions__trials", filter=known), well=Count("versions__trials", filter=succeeded)
        )

    @column(_("Skill"), ordering="name")
    def named(self, skill: Skill) -> SafeString:
        return cells.two_lines(skill.name, skill.family or "–")

    @column(_("Status"), label=COLOURS, ordering="status")
    def state(self, skill: Skill) -> tuple[str, str]:
        if skill.waits_since and skill.status == Skill.Status.SERVING:
            return "proposed", gettext("In use, a new version waits")
        return skill.status, skill.get_status_display()

    @column(_("Served to"))
    def served_to(self, skill: Skill) -> str:
        return _circle(skill)

    @column(_("Succeeded with it"))
    def succeeded(self, skill: Skill) -> str:
        return _told(Rate(skill.well, skill.tried))  # type: ignore[attr-defined]  # annotated

    @column(_("Share of sessions"), ordering="share")
    def share_shown(self, skill: Skill) -> str:
        return f"{skill.share} %"

    def gather(self, request: HttpRequest, record: Skill) -> dict[str, Any]:
        versions = list(SkillVersion.objects.filter(skill=record).order_by("-number")[:SHOWN])
        texts = serving.texts_of(versions)
        waits = next((one for one in versions if one.state == SkillVersion.State.PROPOSED), None)
        used = next((one for one in versions if one.number == record.served), None)
        figures = trials.figures_of(versions)
        shown = waits or used or (versions[0] if versions else None)
        found = figures[used.pk] if used else None
        return {
            "skill": record,
            "circle": _circle(record),
            "colour": COLOURS.get(record.status, ""),
            "waits": waits,
            "used": used,
            "shown": shown,
            "texts": _texts(texts.get(shown.pk, ())) if shown else [],
            "comparison": _compared(record, used, waits, texts) if used and waits else None,
            "figures": found,
            "with_it": _told(found.served) if found else "",
            "without": _told(found.without) if found else "",
            "from_control": found is not None and found.without is found.control,
            "apart": _percent(found.difference) if found and found.served.total and found.without.total else "",
            "versions": [_version(one, figures[one.pk], texts) for one in versions],
            "version_colours": VERSION_COLOURS,
            "trials": SkillTrial.objects.filter(of_version__skill=record).select_related("of_version", "trajectory")[
                :SHOWN
            ],
            "may_undo": deciding.undoable(record) is not None,
            "to_look_at": record.status == Skill.Status.WITHDRAWN and record.waits_since and not waits,
        }


def _circle(skill: Skill) -> str:
    if skill.scope == Skill.Scope.AGENT:
        return gettext("Agent %(agent)s") % {"agent": skill.agent_id}
    if skill.scope == Skill.Scope.GROUP:
        name = skill.group.name if skill.group else "–"
        return gettext("Members of %(group)s") % {"group": name}
    return gettext("All agents")


def _texts(texts: Sequence[SkillText]) -> list[ShownText]:
    behind: dict[Any, list[Any]] = {}
    rows = SkillEvidence.objects.filter(text__in=[one.pk for one in texts]).order_by("pk")
    for text, trajectory in rows.values_list("text", "trajectory"):
        behind.setdefault(text, []).append(trajectory)
    return [ShownText(one, behind.get(one.pk, [])) for one in texts]


def _compared(skill: Skill, used: SkillVersion, waits: SkillVersion, texts: Any) -> VersionComparison:
    before, after = (rendering.skill_md(skill.name, texts.get(one.pk, ())) for one in (used, waits))
    return compare(before, after)


def _version(version: SkillVersion, figures: Figures, texts: Any) -> ShownVersion:
    may_serve = version.state == SkillVersion.State.FORMER and serving.says_something(texts.get(version.pk, ()))
    return ShownVersion(version, figures, _told(figures.served), _told(figures.without), may_serve)


def _told(rate: Rate) -> str:
    """Like `12 of 15 (55–93 %)`: with Wilson's interval."""
    if not rate.total:
        return "–"
    lowest, highest = rate.interval
    figures = {
        "succeeded": rate.succeeded,
        "total": rate.total,
        "lowest": round(lowest * 100),
        "highest": round(highest * 100),
    }
    return gettext("%(succeeded)d of %(total)d (%(lowest)d–%(highest)d %%)") % figures


def _percent(interval: tuple[float, float]) -> str:
    lowest, highest = (round(one * 100) for one in interval)
    return gettext("%(lowest)+d to %(highest)+d points") % {"lowest": lowest, "highest": highest}
