"""The forms of a profile section's verbs: each carries the section's version that the operator was looking at."""

from datetime import datetime
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import curation
from memories.admin.fields import LineField, TextField
from memories.admin.page import VerbForm
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.exceptions import NotFound
from memories.models import EndUser, ProfileRevision, ProfileSection, Section
from memories.pipeline.cleaning import clean_lines


class SectionForm(VerbForm):
    section = forms.ChoiceField(choices=Section.choices, widget=forms.HiddenInput)
    version = forms.IntegerField(widget=forms.HiddenInput)
    record: EndUser

    def look_at(self, section: str, row: ProfileSection | None) -> None:
        """Start from what the section says now; `row` is None when nobody has written it."""
        self.fields["section"].initial = section
        self.fields["version"].initial = row.version if row else 0

    def see(self, record: EndUser) -> None:
        super().see(record)
        row = ProfileSection.objects.filter(end_user=record, section=self.data.get("section", "")).first()
        # Without this the next attempt would name the old version again and never be taken.
        self.data = {**self.data.dict(), "version": row.version if row else 0}  # type: ignore[attr-defined]

    def leads_to(self) -> str:
        return reverse("admin:memories_enduser_profile", args=[self.record.pk, self.cleaned_data["section"]])

    def seen(self) -> int:
        version: int = self.cleaned_data["version"]
        return version

    def label(self) -> str:
        return str(Section(self.cleaned_data["section"]).label)


class WriteSectionForm(SectionForm):
    summary = TextField(
        label=gettext_lazy("What is right"),
        required=False,
        max_length=4000,
        rows=6,
        help_text=gettext_lazy("Left empty, nothing is told here, and no job fills it."),
    )
    reason = LineField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=2000,
        help_text=gettext_lazy("Optional; kept with the revision."),
    )

    def look_at(self, section: str, row: ProfileSection | None) -> None:
        super().look_at(section, row)
        self.fields["summary"].initial = row.summary if row else ""

    def clean_summary(self) -> str:
        # A browser sends each end of a line as two characters: the text would differ from itself.
        return clean_lines(self.cleaned_data["summary"])

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        said = {name: self.cleaned_data[name] for name in ("section", "summary", "reason")}
        given = {"end_user": self.record, "expected_version": self.seen(), **said}
        row = curation.write_profile_section(**given, actor=actor, now=now)
        cut = row is not None and row.summary != said["summary"]
        written = _("%(section)s is written: no job and no key changes it from now on.")
        emptied = _("%(section)s is empty: no job and no key changes it from now on.")
        return (written if row else emptied) % {"section": self.label()} + (CUT_OUT if cut else "")


class RestoreSectionForm(SectionForm):
    revision = forms.UUIDField(widget=forms.HiddenInput)
    reason = LineField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=2000,
        help_text=gettext_lazy("Optional; kept with the revision."),
    )

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        mine = ProfileRevision.objects.filter(end_user=self.record, section=self.cleaned_data["section"])
        revision = mine.filter(pk=self.cleaned_data["revision"]).select_related("extraction").first()
        if revision is None:
            raise NotFound
        given: dict[str, Any] = {"revision": revision, "expected_version": self.seen()}
        curation.restore_profile_section(**given, reason=self.cleaned_data["reason"], actor=actor, now=now)
        done = _("%(section)s says again what it said in version %(version)s. No job and no key changes it.")
        return done % {"section": self.label(), "version": revision.version}


class ReleaseSectionForm(SectionForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = {"section": self.cleaned_data["section"], "expected_version": self.seen()}
        curation.release_profile_section(end_user=self.record, **given, actor=actor, now=now)
        return _("%(section)s is given back: the next extraction may rewrite it.") % {"section": self.label()}
