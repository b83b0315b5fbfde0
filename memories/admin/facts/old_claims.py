"""After a fact was corrected or forgotten: what else still says the old claim, each mended with one key; the turns that
say it; and the next context."""

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import permitted
from memories.admin.facts.forms import CorrectForm, ForgetForm
from memories.admin.people.views import MEMORY
from memories.admin.recall.live_context import next_context
from memories.admin.site.naming import named
from memories.admin.site.page import VerbForm, actor_of, address, address_of_section, message_of, url_of
from memories.admin.site.segments import Segment, diff
from memories.admin.site.template_tags import UNDO_TAG
from memories.admin.site.undo import UndoViews, undo
from memories.curation.old_claims import (
    LONGEST_FILE,
    OCCURRENCE_KINDS,
    PLAIN_KINDS,
    Mend,
    Occurrence,
    OccurrenceKind,
    claim_of,
    mend,
    occurrences,
    redact_turns,
)
from memories.exceptions import MemoryHubError
from memories.models import ActorKind, ChangeSet, EndUser, Fact
from memories.models.memories.episodes import LISTS
from memories.retrieval.outdated import SayingTurn, turns_still_saying
from memories.text.claims import OldClaim

MOST_SHOWN = 50
# Redacting deletes the words of a conversation, and what rests on them.
REDACT = ("memories.view_session", "memories.change_session")
# What it takes to see a memory of the kind, and to change it.
MAY_SEE: dict[str, str] = {
    OccurrenceKind.SECTION: "memories.view_fact",
    OccurrenceKind.EPISODE: "memories.view_episode",
    OccurrenceKind.PENDING: "memories.view_fact",
    OccurrenceKind.FACT: "memories.view_fact",
    OccurrenceKind.SUMMARY: "memories.view_session",
    OccurrenceKind.FILE: "memories.view_memoryfile",
    OccurrenceKind.TRIPLE: "memories.view_graphtriple",
    **{name: f"memories.view_{kind.model._meta.model_name}" for name, kind in PLAIN_KINDS.items()},
}
MAY_CHANGE: dict[str, str] = {
    OccurrenceKind.SECTION: "memories.change_enduser",
    OccurrenceKind.EPISODE: "memories.change_episode",
    OccurrenceKind.PENDING: "memories.change_fact",
    OccurrenceKind.FACT: "memories.change_fact",
    OccurrenceKind.SUMMARY: "memories.change_session",
    OccurrenceKind.FILE: "memories.change_memoryfile",
    OccurrenceKind.TRIPLE: "memories.change_graphtriple",
    **{name: f"memories.change_{kind.model._meta.model_name}" for name, kind in PLAIN_KINDS.items()},
}
LABELS: dict[str, Promise | str] = {
    OccurrenceKind.SECTION: _("Profile"),
    OccurrenceKind.EPISODE: _("Episode"),
    OccurrenceKind.PENDING: _("Pending fact"),
    OccurrenceKind.FACT: _("Fact"),
    OccurrenceKind.SUMMARY: _("Running summary"),
    OccurrenceKind.FILE: _("Memory file"),
    OccurrenceKind.TRIPLE: _("Triple"),
    **{name: capfirst(kind.model._meta.verbose_name or "") for name, kind in PLAIN_KINDS.items()},
}
DONE: dict[Mend, Promise] = {Mend.REPLACE: _("The memory is corrected."), Mend.DROP: _("The memory is gone.")}
DROPS: dict[str, Promise] = {
    OccurrenceKind.PENDING: _("Reject"),
    OccurrenceKind.FACT: _("Forget"),
    OccurrenceKind.EPISODE: _("Forget"),
    OccurrenceKind.FILE: _("Delete"),
    OccurrenceKind.TRIPLE: _("Forget"),
    **dict.fromkeys(PLAIN_KINDS, _("Delete")),
}


class MendForm(forms.Form):
    kind = forms.ChoiceField(choices=[(kind, kind) for kind in OCCURRENCE_KINDS], widget=forms.HiddenInput)
    memory = forms.UUIDField(widget=forms.HiddenInput)
    version = forms.IntegerField(widget=forms.HiddenInput)
    field = forms.ChoiceField(choices=[(name, name) for name in LISTS], required=False, widget=forms.HiddenInput)
    how = forms.ChoiceField(choices=[(how, how) for how in Mend])
    # Two characters for each end of a line of a file.
    text = forms.CharField(required=False, max_length=2 * LONGEST_FILE)


class RedactForm(forms.Form):
    """The turns that are chosen; `is_sure`: that it cannot be undone."""

    turn = forms.TypedMultipleChoiceField(coerce=uuid.UUID)
    is_sure = forms.BooleanField()

    def __init__(self, data: Any, saying: Sequence[SayingTurn]) -> None:
        super().__init__(data)
        self.fields["turn"].choices = [(str(one.turn.pk), "") for one in saying]  # type: ignore[attr-defined]


class OldClaimViews(UndoViews):
    """A page of facts that goes on, after a fact was corrected or forgotten, to what else still says the old claim."""

    @address("<uuid:object_id>/old_claims/")
    def old_claims(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The list; posted, one of its memories is mended, or turns are redacted, and the next context is shown before
        and after."""
        fact = self.find(request, str(object_id), may_change=True)
        claim = claim_of(fact)
        if claim is None:
            return HttpResponseRedirect(url_of(fact))
        if request.method != "POST":
            return self._show_claims(request, fact, claim)
        if "redact" in request.POST:
            return self._redact(request, fact, claim)
        form = MendForm(request.POST)
        if not form.is_valid():
            return self._show_claims(request, fact, claim, refused=gettext("Please fix the marked fields."), status=400)
        data, now = form.cleaned_data, timezone.now()
        kind, how = data["kind"], Mend(data["how"])
        if not request.user.has_perms((MAY_SEE[kind], MAY_CHANGE[kind])):
            raise PermissionDenied
        before = _next_context(request, fact)
        try:
            mend(
                end_user=fact.end_user,
                claim=claim,
                kind=kind,
                row_id=data["memory"],
                field=data["field"],
                how=how,
                text=data["text"],
                expected_version=data["version"],
                actor=actor_of(request),
                now=now,
            )
        except MemoryHubError as error:
            return self._show_claims(request, fact, claim, refused=message_of(error), status=error.status)
        made = self._mends(request, fact).filter(created_at=now).order_by("-id").first()
        undo = f"{UNDO_TAG}{reverse('admin:memories_fact_undo_mend', args=[fact.pk, made.pk])}" if made else ""
        done = _("The lines are cut out.") if how == Mend.DROP and data["field"] else DONE[how]
        messages.success(request, str(done), extra_tags=undo)
        return self._show_claims(request, fact, claim, before=before)

    def _redact(self, request: HttpRequest, fact: Fact, claim: OldClaim) -> HttpResponse:
        """Cut what they say of the old claim out of the chosen turns."""
        if not request.user.has_perms(REDACT):
            raise PermissionDenied
        form = RedactForm(request.POST, turns_still_saying(fact.end_user, fact.pk)[:MOST_SHOWN])
        if not form.is_valid():
            refused = gettext("Choose the turns, and confirm that they can be redacted.")
            return self._show_claims(request, fact, claim, refused=refused, status=400)
        before = _next_context(request, fact)
        try:
            count = redact_turns(fact, form.cleaned_data["turn"], actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            return self._show_claims(request, fact, claim, refused=message_of(error), status=error.status)
        said = ngettext("%(count)d turn is redacted.", "%(count)d turns are redacted.", count)
        messages.success(request, said % {"count": count})
        if not Fact.objects.filter(pk=fact.pk).exists():
            # It rested on these turns alone.
            return HttpResponseRedirect(url_of(fact.end_user))
        return self._show_claims(request, fact, claim, before=before)

    @address("<uuid:object_id>/old_claims/undo/<uuid:change_set>/")
    def undo_mend(self, request: HttpRequest, object_id: uuid.UUID, change_set: uuid.UUID) -> HttpResponse:
        """Take back one's own mend, or the correction's own change of another memory of the person."""
        fact = self.find(request, str(object_id), may_change=True)
        page = HttpResponseRedirect(url_of(fact, "old_claims"))
        if request.method != "POST":
            return page
        if not self._mends(request, fact).filter(pk=change_set).exists():
            raise Http404
        undo(request, change_set)
        return page

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        """After a fact was corrected or forgotten whose claim is said elsewhere, the list of that in the place of its
        page."""
        if not isinstance(form, CorrectForm | ForgetForm):
            return super().answer(request, form, done)
        fact = self.find(request, str(form.record.pk), may_change=True)
        claim = claim_of(fact)
        if claim is None or not (occurrences(fact, claim, _kinds(request)) or _saying(request, fact)):
            return super().answer(request, form, done)
        messages.success(request, done, extra_tags=self.tag_of(request, form))
        if request.headers.get("X-Fragment"):
            # A script that corrects beside a search hit stays there; the fact's page has a link.
            return HttpResponseRedirect(url_of(fact))
        before = form.context_before if request.user.has_perms(MEMORY) else None
        return self._show_claims(request, fact, claim, before=before)

    def _mends(self, request: HttpRequest, fact: Fact) -> QuerySet[ChangeSet]:
        """The operator's own changes of the person's memories that the page can make."""
        person: EndUser = fact.end_user
        rows = permitted(request.user, ChangeSet.objects.filter(undone_at=None))
        mine = rows.filter(actor_kind=ActorKind.OPERATOR, actor_id=str(request.user.pk))
        allowed = mine.filter(fact__end_user=person, verb__in=("correct", "reject", "forget"))
        if request.user.has_perm("memories.change_episode"):
            allowed |= mine.filter(episode__end_user=person, verb__in=("edit", "forget"))
        if request.user.has_perm("memories.change_enduser"):
            allowed |= mine.filter(end_user=person, verb="write")
        if request.user.has_perm("memories.change_session"):
            allowed |= mine.filter(end_user=person, verb="rewrite_summary")
        if request.user.has_perm("memories.change_graphtriple"):
            allowed |= mine.filter(end_user=person, verb="forget_triple")
        return allowed

    def _show_claims(
        self,
        request: HttpRequest,
        fact: Fact,
        claim: OldClaim,
        *,
        before: str | None = None,
        refused: str = "",
        status: int = 200,
    ) -> HttpResponse:
        after = _next_context(request, fact)
        found = occurrences(fact, claim, _kinds(request))
        saying = turns_still_saying(fact.end_user, fact.pk)
        shown = saying[:MOST_SHOWN] if request.user.has_perm("memories.view_session") else []
        prefetch_related_objects([one.turn for one in shown], "session")
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Other memories with the old claim"),
            "opts": self.opts,
            "fact": fact,
            "claim": claim,
            "changed": diff(claim.old, claim.new),
            "found": [_shown(request, one, fact.end_user) for one in found[:MOST_SHOWN]],
            "more": max(0, len(found) - MOST_SHOWN),
            "is_forgotten": not claim.new,
            "saying": len(saying),
            "turns": shown,
            "may_redact": request.user.has_perms(REDACT),
            "refused": refused,
            "context": after,
            "is_changed": before is not None and before != after,
            "was_asked": before is not None,
            "context_diff": diff(before, after or "") if before is not None else [Segment(after or "")],
        }
        return TemplateResponse(request, "memories/old_claims.html", context, status=status)


def _next_context(request: HttpRequest, fact: Fact) -> str | None:
    """None for who may not see contexts."""
    return next_context(fact) if request.user.has_perms(MEMORY) else None


def _saying(request: HttpRequest, fact: Fact) -> list[SayingTurn]:
    """None for who may not see conversations."""
    return turns_still_saying(fact.end_user, fact.pk) if request.user.has_perm("memories.view_session") else []


def _kinds(request: HttpRequest) -> list[str]:
    return [kind for kind in OCCURRENCE_KINDS if request.user.has_perm(MAY_SEE[kind])]


def _shown(request: HttpRequest, one: Occurrence, person: EndUser) -> dict[str, Any]:
    return {
        "said": one,
        "label": LABELS[one.kind],
        "where": _where(one, request.user),
        "url": _address_of(one, person),
        "segments": diff(one.text, one.proposed),
        "drop": _("Cut out") if one.field else DROPS.get(one.kind, ""),
        "may_change": request.user.has_perm(MAY_CHANGE[one.kind]),
    }


def _where(one: Occurrence, operator: Any) -> str:
    if one.kind == OccurrenceKind.SECTION:
        section = str(one.row.get_section_display())
        return f"{section} · {one.row.agent_id}" if one.row.agent_id else section
    if one.kind in (OccurrenceKind.FACT, OccurrenceKind.PENDING):
        return str(one.row.get_category_display())
    if one.kind == OccurrenceKind.FILE:
        return f"{one.row.path} · {one.row.agent_id}" if one.row.agent_id else str(one.row.path)
    if one.kind == OccurrenceKind.TRIPLE or one.kind in PLAIN_KINDS:
        return str(one.row.agent_id)
    if one.kind == OccurrenceKind.EPISODE:
        return str(LISTS[one.field] if one.field else _("Summary"))
    return named(one.row.session, operator) if one.kind == OccurrenceKind.SUMMARY else ""


def _address_of(one: Occurrence, person: EndUser) -> str:
    if one.kind == OccurrenceKind.SECTION:
        return address_of_section(person.pk, one.row.section, one.row.agent_id)
    return url_of(one.row.session if one.kind == OccurrenceKind.SUMMARY else one.row)
