"""Clearing what is remembered of a person, or of one agent of theirs: preview, act, and undo of the last ones.

The page lists what keys cleared or deleted many at once, too: only here can it be taken back.
"""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from memories.admin.access import fresh
from memories.admin.people.merging import PersonMergingViews
from memories.admin.site import reasons
from memories.admin.site.mentions import mention
from memories.admin.site.page import actor_of, address, message_of, render_page, require, url_of
from memories.admin.site.reasons import ReasonField
from memories.admin.trail.authors import names_of
from memories.curation.change_sets import KEPT_OF_KEYS
from memories.curation.people.clearing import agents_remembered, clear_memories, preview_clearing
from memories.curation.reverting import revert
from memories.exceptions import MemoryHubError
from memories.models import ChangeSet, EndUser
from memories.models.ids import parse_uuid

MAY = ("memories.view_fact", "memories.change_fact", "memories.view_episode", "memories.change_episode")
CLEARINGS_SHOWN = 10


class ClearForm(forms.Form):
    """Whose memories, and why."""

    agent = forms.ChoiceField(
        label=gettext_lazy("Agent"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy(
            "With an agent only its facts, files, diary and profile, the episodes of its sessions, and what was said "
            "in groups through it."
        ),
    )
    reason = ReasonField(*reasons.CLEAR, longest=500, help_text=gettext_lazy("Optional; recorded with every change."))

    def __init__(self, data: Any = None, *, agents: list[str]) -> None:
        super().__init__(data)
        choices = [("", _("All agents")), *((agent, agent) for agent in agents)]
        self.fields["agent"].choices = choices  # type: ignore[attr-defined]


class PersonClearingViews(PersonMergingViews):
    """A page of people whose memories can be cleared."""

    @address("<uuid:object_id>/clear/")
    def clear(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form with what all of it would clear; posted, a preview of the choice; confirmed, the clearing."""
        person: EndUser = self.find(request, object_id, may_change=True)
        require(request, *MAY)
        made = ChangeSet.objects.filter(end_user=person, verb__in=KEPT_OF_KEYS)
        if "undo" in request.POST:
            return self._undo_clearing(request, get_object_or_404(made, pk=parse_uuid(request.POST["undo"])))
        form = ClearForm(request.POST if request.method == "POST" else None, agents=agents_remembered(person))
        is_chosen = form.is_valid()
        if is_chosen and "confirmed" in request.POST:
            return fresh.required(request) or self._clear(request, person, form.cleaned_data)
        last = list(made[:CLEARINGS_SHOWN])
        undone = ChangeSet.objects.in_bulk([one.reverted_by for one in last if one.reverted_by])
        names = names_of(last)
        shown = {
            "title": _("Clear memories"),
            "opts": self.opts,
            "form": form,
            "person": person,
            "is_chosen": is_chosen,
            "agent": form.cleaned_data["agent"] if is_chosen else "",
            "clearings": [
                (one, names.get(one.actor_id, one.get_actor_kind_display()), undone.get(one.reverted_by))
                for one in last
            ],
        }
        shown["counts"] = preview_clearing(end_user=person, agent_id=str(shown["agent"]))
        status = 400 if form.is_bound and not is_chosen else 200
        return render_page(request, "memories/person_clear.html", status=status, **shown)

    def _clear(self, request: HttpRequest, person: EndUser, given: Mapping[str, Any]) -> HttpResponse:
        try:
            counts = clear_memories(
                end_user=person,
                agent_id=given["agent"],
                reason=given["reason"],
                actor=actor_of(request),
                now=timezone.now(),
            )
        except MemoryHubError as error:
            messages.error(request, message_of(error))
            return HttpResponseRedirect(url_of(person))
        done = _("The memories of %(person)s are cleared. You can undo it here.") % {"person": mention(person)}
        messages.success(request, done if any(counts.values()) else _("Nothing was changed."))
        return HttpResponseRedirect(request.path)

    def _undo_clearing(self, request: HttpRequest, made: ChangeSet) -> HttpResponse:
        try:
            revert(change_set=made.pk, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            messages.error(request, message_of(error))
        else:
            messages.success(request, _("The cleared memories are back; later changes were kept."))
        return HttpResponseRedirect(request.path)
