"""A dry run of extraction: the exact prompt of a session's batch, or of a pasted text, and what would come of it.

Nothing is stored (memories/extraction/preview.py). Everything is posted: no text is in an address.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.people.finding import find_person
from memories.admin.people.views import MEMORY
from memories.admin.runs.wording import label_of
from memories.admin.site.fields import LineField, PersonField, TenantField, TextField
from memories.admin.site.page import actor_of, message_of, render_page, require
from memories.admin.site.segments import Segment, diff
from memories.admin.site.wording import explain_failure
from memories.capture.ingest import PostedMessage
from memories.exceptions import MemoryHubError
from memories.extraction import preview
from memories.extraction.preview import Answered, FactChange, Preview, Source, Trial
from memories.models import Category, EndUser, ReviewItem, Role, Section, Session, Status, Tenant
from memories.models.ids import parse_uuid

MAY = (*MEMORY, "memories.view_extractionrun")
# To ask a model, with words of one's own: who sets guidance for everybody, too.
ASK = "memories.change_tenant"
LONGEST_TEXT = 20_000
LAST_TURN = 2**31 - 1
# A line that begins with who speaks begins a turn; full-width colons, too.
_SPEAKER = re.compile(r"^\s*(user|assistant|用户|助手)\s*[:：]\s*", re.IGNORECASE)
# Verb of the first revision → what would become of the fact.
BECOMES: Mapping[str, Any] = {
    "extract": gettext_lazy("New"),
    "reinforce": gettext_lazy("Already known, mentioned again"),
    "refine": gettext_lazy("Refined"),
    "supersede": gettext_lazy("Ends: something newer was said"),
    "remove": gettext_lazy("Known facts no longer true"),
    "archive": gettext_lazy("Archived: over capacity"),
}
_ROLES = {"user": Role.USER, "用户": Role.USER, "assistant": Role.ASSISTANT, "助手": Role.ASSISTANT}


class PreviewForm(forms.Form):
    """Of a session: from which turn on; else a pasted text. With what: a model, a guidance."""

    tenant = TenantField(preselected=True)
    text = TextField(
        label=gettext_lazy("Text"),
        max_length=LONGEST_TEXT,
        rows=6,
        help_text=gettext_lazy(
            "What somebody says. Lines that begin with “User:” or “Assistant:” begin a turn; without them all of it is "
            "one of the user."
        ),
    )
    user_id = PersonField(
        label=gettext_lazy("End user"),
        required=False,
        max_length=255,
        help_text=gettext_lazy("Whose memories the model is shown. Empty: somebody new."),
    )
    agent = LineField(label=gettext_lazy("Agent"), required=False, max_length=255)
    after = forms.IntegerField(
        label=gettext_lazy("After turn"),
        required=False,
        min_value=0,
        max_value=LAST_TURN,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=gettext_lazy("Empty: what waits; if nothing waits, from the beginning."),
    )
    model = LineField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=preview.LONGEST_MODEL,
        help_text=gettext_lazy("Another model at the same endpoint. Empty: the tenant's."),
    )
    other_guidance = forms.BooleanField(label=gettext_lazy("With the guidance below"), required=False)
    guidance = TextField(
        label=gettext_lazy("Guidance"),
        required=False,
        max_length=preview.LONGEST_GUIDANCE,
        rows=3,
        help_text=gettext_lazy(
            "What the model is told to look for, besides its instructions. Without the tick it is the tenant's own."
        ),
    )

    def __init__(self, data: Any = None, *, operator: Any, session: Session | None, initial: Any = None) -> None:
        super().__init__(data, auto_id="preview_%s", initial=initial)
        self.session = session
        self.person: EndUser | None = None
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        for name in ("tenant", "text", "user_id", "agent") if session else ("after",):
            del self.fields[name]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if data.get("tenant") and data.get("user_id"):
            self.person, why_not = find_person(data["tenant"], data["user_id"])
            if self.person is None:
                self.add_error("user_id", why_not)
        return data

    def source(self) -> Source:
        data = self.cleaned_data
        if self.session:
            return Source(self.session.tenant, session=self.session, after=data["after"])
        user_id = self.person.external_id if self.person else ""
        agent = data["agent"].lower()
        return Source(data["tenant"], messages=turns_of(data["text"]), user_id=user_id, agent_id=agent)

    def trial(self) -> Trial:
        data = self.cleaned_data
        return Trial(data["model"], data["guidance"] if data["other_guidance"] else None)


@dataclass(frozen=True)
class ShownFact:
    """What would become of a fact, in words. `segments`: the texts before and after, where they differ."""

    change: FactChange
    category: str
    said: str
    status: str
    reasons: list[str]
    segments: Sequence[Segment] = ()


def shown_facts(answered: Answered) -> list[ShownFact]:
    """The facts of the answer, in its order."""
    return [
        ShownFact(
            one,
            str(Category(one.category).label),
            str(BECOMES.get(one.verb, one.verb)),
            str(Status(one.status).label),
            [str(ReviewItem.Reason(reason).label) for reason in one.reasons],
            diff(one.before, one.content) if one.before and one.before != one.content else (),
        )
        for one in answered.facts
    ]


def turns_of(text: str) -> list[PostedMessage]:
    """The turns of a pasted conversation; at most as many as a dry run takes, the last ones."""
    turns: list[tuple[Role, list[str]]] = []
    for line in text.splitlines():
        found = _SPEAKER.match(line)
        if found or not turns:
            role = _ROLES[found[1].lower()] if found else Role.USER
            turns.append((role, []))
        turns[-1][1].append(line[found.end() :] if found else line)
    said = [(role, "\n".join(lines).strip()) for role, lines in turns]
    return [PostedMessage(role, words) for role, words in said if words][-preview.MOST_MESSAGES :]


def urls() -> list[URLPattern]:
    return [path("extraction-preview/", admin.site.admin_view(preview_page), name="extraction_preview")]


def preview_page(request: HttpRequest) -> HttpResponse:
    """The form, for a pasted text or with `?session=` for one of a session; posted, with what came of it."""
    require(request, *MAY)
    session = _session_of(request)
    may_ask = request.user.has_perm(ASK)
    if request.method != "POST":
        tenant = session.tenant if session else _only_tenant(request)
        initial = {"guidance": tenant.extraction_guidance if tenant else ""}
        form = PreviewForm(operator=request.user, session=session, initial=initial)
        return _page(request, form, may_ask=may_ask)
    form = PreviewForm(request.POST, operator=request.user, session=session)
    if not form.is_valid():
        return _page(request, form, may_ask=may_ask, status=HTTPStatus.BAD_REQUEST)
    asks = request.POST.get("act") == "run"
    if asks:
        require(request, ASK)
    now = timezone.now()
    try:
        if asks:
            shown = preview.run(source=form.source(), trial=form.trial(), actor=actor_of(request), now=now)
        else:
            shown = preview.show(source=form.source(), trial=form.trial(), now=now)
    except MemoryHubError as error:
        form.add_error(None, message_of(error))
        return _page(request, form, may_ask=may_ask, status=error.status)
    return _page(request, form, may_ask=may_ask, shown=shown, **_told(shown))


def _told(shown: Preview) -> dict[str, Any]:
    """The answer in words; nothing where no model was asked."""
    answered = shown.answered
    if answered is None:
        return {}
    counts = [*answered.outcome.items(), *answered.refusals.items()]
    return {
        "answered": answered,
        "facts": shown_facts(answered),
        "refused": [(one.content, label_of(one.reason)) for one in answered.refused],
        "sections": [(Section(one.section).label, one.text, one.is_proposed) for one in answered.sections],
        "counts": [(label_of(code), count) for code, count in counts if count],
        "failure": explain_failure(answered.failure) if answered.failure else "",
    }


def _session_of(request: HttpRequest) -> Session | None:
    """The session that the address names, if the operator may see it."""
    key: uuid.UUID | None = parse_uuid(request.GET.get("session", ""))
    if key is None:
        return None
    rows = Session.objects.select_related("tenant", "end_user__tenant")
    found: Session | None = within(request.user, rows).filter(pk=key).first()
    return found


def _only_tenant(request: HttpRequest) -> Tenant | None:
    tenants = list(tenants_of(request.user)[:2])
    return tenants[0] if len(tenants) == 1 else None


def _page(request: HttpRequest, form: PreviewForm, *, status: int = 200, **more: Any) -> HttpResponse:
    page = render_page(
        request,
        "memories/extraction_preview.html",
        status=status,
        title=_("Try extraction"),
        form=form,
        session=form.session,
        **more,
    )
    # It shows what people said, and is made anew each time.
    page["Cache-Control"] = "no-store"
    return page
