"""A tenant's content policy: its categories in forms, its versions, dry runs, and what was dropped."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Max, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import LineField, LinesField, TextField
from memories.admin.site.naming import called, named
from memories.admin.site.page import actor_of, message_of, render_page, require
from memories.admin.trail.authors import names_of
from memories.content_policy import categories
from memories.content_policy.categories import PolicyCategory
from memories.curation.batches import undo_batch
from memories.curation.policy_trials import counts_of, delete_found, start_trial, state_of
from memories.curation.tenants.content_policy import current_policy, put_policy, restore_policy
from memories.exceptions import InvalidInput, MemoryHubError
from memories.kinds import PLAIN
from memories.models import Batch, ContentPolicy, PolicyDrop, PolicyTrial, Tenant
from memories.models.content_policy import Road

CHANGE = "memories.change_tenant"
# What deleting memories takes besides.
DELETE = ("memories.change_fact", "memories.change_episode")
SHOWN_VERSIONS, SHOWN_FOUND, LOG_DAYS = 20, 50, 30
_PAGES = {"fact": "fact", "episode": "episode", "file": "memoryfile", "triple": "graphtriple"}
_PAGES |= {kind.name: str(kind.model._meta.model_name) for kind in PLAIN}
_KINDS = {
    "fact": gettext_lazy("facts"),
    "episode": gettext_lazy("episodes"),
    "profile": gettext_lazy("profile sections"),
    "file": gettext_lazy("memory files"),
    "triple": gettext_lazy("triples"),
    "group_fact": gettext_lazy("facts of groups"),
    **{kind.name: kind.model._meta.verbose_name_plural for kind in PLAIN},
}


class CategoryForm(forms.Form):
    """One category; `place` is where it stands among the others, empty for a new one."""

    place = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)
    version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    name = LineField(label=gettext_lazy("Name"), max_length=categories.LONGEST_NAME)
    description = TextField(
        label=gettext_lazy("Description"),
        required=False,
        rows=2,
        max_length=categories.LONGEST_DESCRIPTION,
        help_text=gettext_lazy("For the language model: what belongs to the category."),
    )
    words = LinesField(
        label=gettext_lazy("Words"),
        longest=categories.LONGEST_WORD,
        most=categories.MOST_WORDS,
        rows=4,
        help_text=gettext_lazy("One word or phrase per line. Each text with one of them falls under the category."),
    )
    not_allowed = LinesField(
        label=gettext_lazy("Examples not allowed"),
        longest=categories.LONGEST_EXAMPLE,
        most=categories.MOST_EXAMPLES,
        rows=4,
        help_text=gettext_lazy("One per line. What means about the same falls under the category, too."),
    )
    allowed = LinesField(
        label=gettext_lazy("Examples allowed"),
        longest=categories.LONGEST_EXAMPLE,
        most=categories.MOST_EXAMPLES,
        rows=4,
        help_text=gettext_lazy("One per line. What means about the same is kept, even with one of the words."),
    )

    @property
    def category(self) -> dict[str, Any]:
        found = {name: self.cleaned_data[name] for name in PolicyCategory.__annotations__}
        # What is left empty of a new one is the hub's, where it knows the topic.
        is_new = found and self.cleaned_data["place"] is None
        return {name: value or None for name, value in found.items()} if is_new else found


@dataclass(frozen=True)
class Shown:
    """A category with its form; open where the operator has to look."""

    name: str
    form: CategoryForm
    is_open: bool = False


def urls() -> list[URLPattern]:
    view = admin.site.admin_view(content_policy)
    return [path("memories/tenant/<uuid:object_id>/content-policy/", view, name="memories_tenant_policy")]


def content_policy(request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
    """The page. A POST carries out one of its acts: 400 for invalid input, the error's status if it fails."""
    require(request, "memories.view_tenant", CHANGE)
    tenant = get_object_or_404(tenants_of(request.user), pk=object_id)
    if request.method != "POST":
        return _page(request, tenant)
    act = _ACTS.get(request.POST.get("act", ""))
    if act is None:
        return _page(request, tenant, status=HTTPStatus.BAD_REQUEST)
    tried = CategoryForm(request.POST, auto_id="tried_%s") if act in (_save, _try) else None
    if tried is not None and not tried.is_valid():
        return _page(request, tenant, tried=tried, status=HTTPStatus.BAD_REQUEST)
    try:
        done = act(request, tenant, tried, timezone.now())
    except MemoryHubError as error:
        if tried is None:
            messages.error(request, message_of(error))
            return _page(request, tenant, status=error.status)
        _refuse(tried, error)
        return _page(request, tenant, tried=tried, status=error.status)
    messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:memories_tenant_policy", args=[tenant.pk]))


def _refuse(form: CategoryForm, error: MemoryHubError) -> None:
    if not isinstance(error, InvalidInput):
        form.add_error(None, message_of(error))
    for fault in error.faults:
        field = fault.pointer.split("/")[3] if fault.pointer.count("/") > 2 else None
        form.add_error(field if field in form.fields else None, fault.detail)


def _with(tenant: Tenant, form: CategoryForm) -> list[Mapping[str, Any]]:
    """The categories in force with the one of the form."""
    policy = current_policy(tenant)
    found: list[Mapping[str, Any]] = list(policy.categories) if policy else []
    place = form.cleaned_data["place"]
    if place is None or place >= len(found):
        return [*found, form.category]
    return [*found[:place], form.category, *found[place + 1 :]]


def _save(request: HttpRequest, tenant: Tenant, form: Any, now: datetime) -> str:
    version = form.cleaned_data["version"]
    row = put_policy(
        tenant=tenant, given=_with(tenant, form), actor=actor_of(request), now=now, expected_version=version
    )
    return _("Version %(version)d is in force from the next text on.") % {"version": row.version}


def _topic(request: HttpRequest, tenant: Tenant, _form: Any, now: datetime) -> str:
    policy = current_policy(tenant)
    given = [*(policy.categories if policy else []), {"name": request.POST.get("topic", "")}]
    row = put_policy(tenant=tenant, given=given, actor=actor_of(request), now=now)
    return _("Version %(version)d is in force from the next text on.") % {"version": row.version}


def _remove(request: HttpRequest, tenant: Tenant, _form: Any, now: datetime) -> str:
    policy = current_policy(tenant)
    name = request.POST.get("name", "")
    left = [one for one in (policy.categories if policy else []) if one["name"] != name]
    row = put_policy(
        tenant=tenant, given=left, actor=actor_of(request), now=now, expected_version=_number(request, "version")
    )
    return _("Version %(version)d is in force from the next text on.") % {"version": row.version}


def _restore(request: HttpRequest, tenant: Tenant, _form: Any, now: datetime) -> str:
    version = _number(request, "restored")
    row = restore_policy(tenant=tenant, version=version, actor=actor_of(request), now=now)
    return _("Version %(version)d is in force from the next text on.") % {"version": row.version}


def _try(request: HttpRequest, tenant: Tenant, form: Any, now: datetime) -> str:
    start_trial(tenant=tenant, given=_with(tenant, form), actor=actor_of(request), now=now)
    return _("The dry run has begun. Nothing is changed by it.")


def _try_all(request: HttpRequest, tenant: Tenant, _form: Any, now: datetime) -> str:
    start_trial(tenant=tenant, given=None, actor=actor_of(request), now=now)
    return _("The dry run has begun. Nothing is changed by it.")


def _delete(request: HttpRequest, tenant: Tenant, _form: Any, now: datetime) -> str:
    require(request, *DELETE)
    delete_found(trial_id=_id(request), tenant=tenant, actor=actor_of(request), now=now)
    return _("A worker moves what was found to the trash. You can undo that here.")


def _undo(request: HttpRequest, tenant: Tenant, _form: Any, now: datetime) -> str:
    require(request, *DELETE)
    trial = get_object_or_404(PolicyTrial.objects.filter(tenant=tenant).exclude(batch=None), pk=_id(request))
    if trial.ended_at is None:
        raise Http404
    batch = undo_batch(batch_id=trial.batch, actor=actor_of(request), now=now)  # type: ignore[arg-type]
    return _("Undone: the memories of %(people)d end users are back.") % {"people": batch.counts["undone"]}


_ACTS: Mapping[str, Callable[[HttpRequest, Tenant, Any, datetime], str]] = {
    "save": _save,
    "topic": _topic,
    "remove": _remove,
    "restore": _restore,
    "try": _try,
    "try_all": _try_all,
    "delete": _delete,
    "undo": _undo,
}


def _number(request: HttpRequest, name: str) -> int:
    given = request.POST.get(name, "")
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise Http404
    return int(given)


def _id(request: HttpRequest) -> uuid.UUID:
    try:
        return uuid.UUID(request.POST.get("trial", ""))
    except ValueError:
        raise Http404 from None


def _page(
    request: HttpRequest, tenant: Tenant, *, tried: CategoryForm | None = None, status: int = 200
) -> HttpResponse:
    tenant.refresh_from_db(fields=["policy_version"])
    policy = current_policy(tenant)
    version = tenant.policy_version
    known: Sequence[Mapping[str, Any]] = policy.categories if policy else []
    if tried is not None:
        # What the operator sees now is what the next attempt changes.
        tried.data = {**tried.data.dict(), "version": version}  # type: ignore[attr-defined]  # a QueryDict
    place = tried.data.get("place", "") if tried is not None else None
    shown = [
        Shown(one["name"], tried, True)
        if tried is not None and place == str(number)
        else Shown(one["name"], _form_of(one, number, version))
        for number, one in enumerate(known)
    ]
    is_new = tried is not None and not any(one.form is tried for one in shown)
    new = tried if is_new and tried is not None else CategoryForm(initial={"version": version}, auto_id="new_%s")
    return render_page(
        request,
        "memories/tenant_policy.html",
        status=status,
        title=_("Content policy of %(tenant)s") % {"tenant": called(tenant)},
        tenant=tenant,
        opts=Tenant._meta,
        original=tenant,
        here=_("Content policy"),
        policy=policy,
        version=version,
        shown=shown,
        new=Shown("", new, is_new or not known),
        tried=tried,
        topics=categories.topic_names(one["name"] for one in known),
        versions=_versions(tenant),
        trial=_trial(tenant, request.user),
        log=_log(tenant),
        log_days=LOG_DAYS,
    )


def _form_of(one: Mapping[str, Any], number: int, version: int) -> CategoryForm:
    lists = {name: "\n".join(one[name]) for name in categories.LISTS}
    initial = {**one, **lists, "place": number, "version": version}
    return CategoryForm(initial=initial, auto_id=f"category{number}_%s")


def _versions(tenant: Tenant) -> list[tuple[ContentPolicy, str]]:
    """The newest versions, each with who made it."""
    rows = list(ContentPolicy.objects.filter(tenant=tenant)[:SHOWN_VERSIONS])
    names = names_of(rows)
    return [(row, names.get(row.actor_id, row.get_actor_kind_display())) for row in rows]


def _trial(tenant: Tenant, operator: Any) -> dict[str, Any] | None:
    """The newest dry run, with its counts and some of what it found."""
    row = PolicyTrial.objects.filter(tenant=tenant).first()
    if row is None:
        return None
    counts = [
        (category, [(_KINDS.get(kind, kind), count) for kind, count in kinds.items()])
        for category, kinds in counts_of(row).items()
    ]
    found = [
        (_KINDS.get(one.kind, one.kind), one.category, named(one.end_user, operator), _address(one))
        for one in row.findings.select_related("end_user")[:SHOWN_FOUND]
    ]
    batch = Batch.objects.filter(pk=row.batch).first() if row.batch else None
    left = row.findings.count()
    return {"row": row, "state": state_of(row), "counts": counts, "found": found, "left": left, "batch": batch}


def _address(one: Any) -> str:
    if one.kind in _PAGES:
        return reverse(f"admin:memories_{_PAGES[one.kind]}_change", args=[one.row])
    return reverse("admin:memories_enduser_change", args=[one.end_user_id])


def _log(tenant: Tenant) -> list[dict[str, Any]]:
    since = timezone.now() - timedelta(days=LOG_DAYS)
    rows = PolicyDrop.objects.filter(tenant=tenant, last_at__gte=since).order_by()
    found = rows.values("category", "road").annotate(texts=Sum("count"), last=Max("last_at")).order_by("-texts")
    return [{**row, "road": Road(row["road"]).label} for row in found]
