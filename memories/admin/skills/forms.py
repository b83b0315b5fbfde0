"""The forms of verbs on skills: each carries the version of the skill that the operator was looking at."""

import difflib
from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget

from memories.admin.site.fields import LinesField
from memories.admin.site.page import VersionForm
from memories.curation.skills import deciding
from memories.curation.skills.deciding import EditedText
from memories.models import Skill, SkillText, SkillVersion
from memories.models.memories.skills import LONGEST_TEXT
from memories.skills import serving

_LONGEST_NUMBER = 9
_SECTIONS = tuple(str(one) for one in SkillText.Section)


class _SkillForm(VersionForm):
    def arguments(self) -> dict[str, Any]:
        return {"skill_id": self.record.pk, "expected_version": self.cleaned_data["version"]}


class ApproveForm(_SkillForm):
    calls = staticmethod(deciding.approve)
    done = _("%(skill)s is in use from now on. Its trials begin here.")


class RejectForm(_SkillForm):
    calls = staticmethod(deciding.reject)
    done = _("The proposal for %(skill)s is rejected. What was in use stays.")


class UndoForm(_SkillForm):
    calls = staticmethod(deciding.undo)
    done = _("The decision is taken back: %(skill)s waits for review again.")


class WithdrawForm(_SkillForm):
    calls = staticmethod(deciding.withdraw)
    done = _("%(skill)s is withdrawn: no agent is given it.")


class LeaveForm(_SkillForm):
    calls = staticmethod(deciding.leave_withdrawn)
    done = _("%(skill)s stays withdrawn.")


class ServeVersionForm(_SkillForm):
    number = forms.IntegerField(min_value=1, max_value=10**_LONGEST_NUMBER, widget=forms.HiddenInput)
    calls = staticmethod(deciding.serve_version)
    done = _("That version of %(skill)s is in use again, as a new one. Its trials begin anew.")

    def arguments(self) -> dict[str, Any]:
        return {**super().arguments(), "number": self.cleaned_data["number"]}


class ShareForm(_SkillForm):
    share = forms.IntegerField(
        label=_("Percent of sessions"),
        min_value=0,
        max_value=100,
        widget=UnfoldAdminTextInputWidget,
        help_text=_("The other sessions are kept without it, to compare."),
    )
    calls = staticmethod(deciding.set_share)
    done = _("The share of sessions that are given %(skill)s is changed.")

    def values_of(self, record: Skill) -> dict[str, Any]:
        return {"version": record.version, "share": record.share}

    def arguments(self) -> dict[str, Any]:
        return {**super().arguments(), "share": self.cleaned_data["share"]}


class EditForm(_SkillForm):
    """The texts of the newest version, one a line: the section, a colon, the text."""

    texts = LinesField(
        label=_("Texts"),
        longest=LONGEST_TEXT + 20,
        most=deciding.MOST_LINES,
        rows=12,
        help_text=_("One per line: title, when, step, check or pitfall, a colon, and the text."),
    )
    calls = staticmethod(deciding.edit)
    done = _("Your version of %(skill)s waits for approval.")

    def values_of(self, record: Skill) -> dict[str, Any]:
        return {"version": record.version, "texts": [f"{one.section}: {one.text}" for one in _newest(record)]}

    def clean_texts(self) -> list[tuple[str, str]]:
        found = []
        for line in self.cleaned_data["texts"]:
            section, colon, text = line.replace("：", ":", 1).partition(":")
            if not colon or section.strip().lower() not in _SECTIONS:
                message = _t("Begin each line with title, when, step, check or pitfall, and a colon: “%(line)s”.")
                raise ValidationError(message % {"line": line[:60]})
            found.append((section.strip().lower(), text.strip()))
        return found

    def arguments(self) -> dict[str, Any]:
        """Each line with the text that it was, or was made of: what stands where others stood rewords these."""
        before = _newest(self.record)
        after: Sequence[tuple[str, str]] = self.cleaned_data["texts"]
        old = [(str(text.section), text.text) for text in before]
        edited: list[EditedText] = []
        for tag, start, end, first, last in difflib.SequenceMatcher(a=old, b=list(after), autojunk=False).get_opcodes():
            for place in range(first, last):
                at = start + place - first
                of = before[at].pk if tag in ("equal", "replace") and at < end else None
                edited.append(EditedText(*after[place], of=of))
        return {**super().arguments(), "texts": edited}


def _newest(skill: Skill) -> Sequence[SkillText]:
    """The texts of the version that waits, or of the newest one."""
    version = deciding.waiting(skill) or SkillVersion.objects.filter(skill=skill).order_by("-number").first()
    return serving.texts_of([version]).get(version.pk, ()) if version else ()
