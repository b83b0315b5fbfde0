"""The forms of verbs on dreams: each carries the version of the dream that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from memories.admin.site.mentions import mention
from memories.admin.site.page import VerbForm, VersionForm
from memories.audit import Actor
from memories.dream.deciding import accept, approve, decline, keep, restore, undo_edit
from memories.dream.dreaming import dream_by_hand
from memories.dream.proposals import MOST_EDITS
from memories.models import Dream, EndUser

_LONGEST_AGENT = 255


class ApproveEditsForm(VersionForm):
    """The edits that were left ticked are applied; the others are declined."""

    edit = forms.TypedMultipleChoiceField(
        coerce=int, choices=[(str(number), str(number)) for number in range(1, MOST_EDITS + 1)], required=False
    )
    done = _("%(dream)s is decided. What was ticked, and still fits, is in the files.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        chosen = {"accepted": self.cleaned_data["edit"], "expected_version": self.cleaned_data["version"]}
        approve(dream_id=self.record.pk, actor=actor, now=now, **chosen)
        return str(self.done) % {"dream": mention(self.record)}


class DeclineForm(VersionForm):
    done = _("%(dream)s is declined. The files stay as they are.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        decline(dream_id=self.record.pk, actor=actor, now=now, expected_version=self.cleaned_data["version"])
        return str(self.done) % {"dream": mention(self.record)}


class _OneEditForm(VersionForm):
    """A verb on one edit, by its number."""

    number = forms.IntegerField(min_value=1, max_value=MOST_EDITS, widget=forms.HiddenInput)

    def arguments(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {"dream_id": self.record.pk, "number": given["number"], "expected_version": given["version"]}


class UndoEditForm(_OneEditForm):
    calls = staticmethod(undo_edit)
    done = _("An edit of %(dream)s is undone.")


class AcceptEditForm(_OneEditForm):
    calls = staticmethod(accept)
    done = _("The edit is in the file, as your own words.")


class KeepForm(VersionForm):
    done = _("%(dream)s is looked at. What it wrote stays.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        keep(dream_id=self.record.pk, actor=actor, now=now, expected_version=self.cleaned_data["version"])
        return str(self.done) % {"dream": mention(self.record)}


class RestoreVersionForm(VersionForm):
    done = _("The files are what they were before %(dream)s. Its episodes will be read again.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        version = self.cleaned_data["version"]
        _dream, kept = restore(dream_id=self.record.pk, actor=actor, now=now, expected_version=version)
        stayed = ngettext("%(kept)d file stays as it is.", "%(kept)d files stay as they are.", kept) % {"kept": kept}
        return f"{str(self.done) % {'dream': mention(self.record)}} {stayed if kept else ''}".rstrip()


class DreamNowForm(VerbForm):
    """On a person's page: begin a dream about their files of one agent."""

    needs_permissions = ("memories.change_dream",)
    record: EndUser
    agent = forms.CharField(required=False, max_length=_LONGEST_AGENT, widget=forms.HiddenInput)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        dream = dream_by_hand(person=self.record, agent_id=self.cleaned_data["agent"], actor=actor, now=now)
        return gettext("%(dream)s has begun. A worker carries it out.") % {"dream": mention(dream)}

    def leads_to(self) -> str:
        listed = reverse("admin:memories_dream_changelist")
        return f"{listed}?{urlencode({'end_user__id__exact': str(self.record.pk)})}"


class ReflectNowForm(DreamNowForm):
    """On a person's page: begin a reflection on their episodes with one agent."""

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        about = {"person": self.record, "agent_id": self.cleaned_data["agent"], "kind": Dream.Kind.REFLECTION}
        dream_by_hand(**about, actor=actor, now=now)
        return gettext("The reflection has begun. What it finds waits in the review queue.")
