"""The forms of a triple's verbs: each carries the version that the operator was looking at."""

from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.admin.site import reasons
from memories.admin.site.fields import LineField
from memories.admin.site.page import Button, VerbForm, VersionForm
from memories.admin.site.reasons import ReasonField, ReasonInput
from memories.curation.graph import deciding
from memories.curation.graph.deciding import TripleCorrection
from memories.curation.graph.stating import TripleRelation
from memories.invisible import strip_invisible
from memories.models import GraphEntity, GraphTriple, TripleStatus
from memories.models.memories.graph import LONGEST_ENTITY, LONGEST_PREDICATE

# Names that the browser proposes while an operator types one.
NAMES_OFFERED = 100


class MomentInput(forms.DateTimeInput):
    """The browser's own field for a day and a time."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M", attrs={"class": "hub-input"})


class TripleForm(VersionForm):
    """A verb of `curation.graph.deciding`."""

    record: GraphTriple

    def offered(self) -> Button | None:
        """None of a fact's: it follows that."""
        is_changed = self.record.fact_id is None and self.record.status != TripleStatus.TRASHED
        return self.button if is_changed else None

    def arguments(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {"triple_id": self.record.pk, "expected_version": given["version"], "reason": given.get("reason", "")}


class ApproveTripleForm(TripleForm):
    button = Button("approve", "check", _("Approve"), _("Approve this triple"), _("Agents get it from then on."))
    calls, done = staticmethod(deciding.approve_triple), _("%(graphtriple)s is approved. Agents are told it.")

    def offered(self) -> Button | None:
        return super().offered() if self.record.status == TripleStatus.PENDING else None


class CorrectTripleForm(TripleForm):
    button = Button(
        "correct", "edit", _("Correct"), _("Save the correction"), _("It counts as confirmed by an operator.")
    )
    subject = LineField(label=_("Subject"), max_length=LONGEST_ENTITY)
    predicate = LineField(label=_("Relation"), max_length=LONGEST_PREDICATE)
    object = LineField(label=_("Object"), max_length=LONGEST_ENTITY)
    valid_from = forms.DateTimeField(label=_("Valid from"), required=False, widget=MomentInput)
    valid_to = forms.DateTimeField(label=_("Until before"), required=False, widget=MomentInput)
    reason = ReasonField(*reasons.CORRECT)
    done = _("%(graphtriple)s is corrected. No application changes it any more.")
    calls = partial(deciding.correct_triple)

    def values_of(self, record: GraphTriple) -> dict[str, Any]:
        return {
            **super().values_of(record),
            "subject": record.subject.name,
            "predicate": record.predicate,
            "object": record.object.name,
            "valid_from": local(record.valid_from),
            "valid_to": local(record.valid_to),
        }

    def arguments(self) -> dict[str, Any]:
        given = self.cleaned_data
        relation = TripleRelation(given["subject"], given["predicate"], given["object"], self.record.agent_id)
        correction = TripleCorrection(relation, self._moment("valid_from"), self._moment("valid_to"))
        return {**super().arguments(), "correction": correction}

    def _moment(self, name: str) -> datetime | None:
        """As it was to the second, if the field, which has minutes, still shows it."""
        was: datetime | None = getattr(self.record, name)
        given: datetime | None = self.cleaned_data[name]
        return was if was and given and was.replace(second=0, microsecond=0) == given else given


class EndTripleForm(TripleForm):
    button = Button("end", "event_busy", _("End"), _("End this triple"), _("It stays as history."))
    ended = forms.DateTimeField(
        label=_("Until before"), widget=MomentInput, help_text=_("In your time zone. From then on it holds no longer.")
    )
    reason = ReasonField(*reasons.CORRECT)
    done = _("%(graphtriple)s is ended.")
    calls = staticmethod(deciding.end_triple)

    def values_of(self, record: GraphTriple) -> dict[str, Any]:
        return {**super().values_of(record), "ended": timezone.localtime(record.valid_to or timezone.now())}

    def arguments(self) -> dict[str, Any]:
        return {**super().arguments(), "ended": self.cleaned_data["ended"]}


class ForgetTripleForm(TripleForm):
    button = Button(
        "forget",
        "delete",
        _("Forget"),
        _("Forget this triple"),
        _("It goes to the trash. The message afterwards has an Undo."),
        danger=True,
    )
    reason = ReasonField(*reasons.FORGET)
    calls, done = staticmethod(deciding.forget_triple), _("%(graphtriple)s is in the trash.")


class JoinEntitiesForm(VerbForm):
    name = LineField(label=_("Name of the other entity"), max_length=LONGEST_ENTITY, help_text=_("It keeps its name."))
    reason = ReasonField(*reasons.JOIN)
    calls, done = staticmethod(deciding.join_entities), _("%(graphentity)s is another name from now on.")
    record: GraphEntity

    def __init__(self, data: Any = None, *, record: GraphEntity) -> None:
        super().__init__(data, record=record)
        others = GraphEntity.objects.filter(end_user=record.end_user_id, merged_into=None).exclude(pk=record.pk)
        newest = others.order_by("-created_at", "-pk").values_list("name", flat=True)
        self.fields["name"].widget = ReasonInput(tuple(map(strip_invisible, newest[:NAMES_OFFERED])))

    def arguments(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {"entity_id": self.record.pk, "name": given["name"], "reason": given["reason"]}


def local(moment: datetime | None) -> datetime | None:
    return timezone.localtime(moment) if moment else None
