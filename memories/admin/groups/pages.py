"""Groups of people: the list, and the page of one with its members and facts, and the verbs on them.

Adding and removing a member take each other back, and so do deleting and restoring a fact, or the group.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget

from memories import conf
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.people.adding import add_refusal
from memories.admin.people.finding import find_person
from memories.admin.site.fields import LineField, LinesField, TenantField
from memories.admin.site.page import RecordPage, VerbForm, actor_of, render_page, url_of
from memories.audit import Actor
from memories.curation.groups.facts import delete_group_fact, restore_group_fact
from memories.curation.groups.membership import (
    change_group,
    create_group,
    delete_group,
    remove_member,
    restore_group,
    set_member,
)
from memories.exceptions import MemoryHubError, NotFound
from memories.models import EndUser, GroupFact, GroupMember, MemoryGroup
from memories.models.memories.groups import LONGEST_NAME

# So many facts the page shows, of either kind.
SHOWN = 200
# So many members a new group can be given at once.
MOST_MEMBERS = 100


class AddGroupForm(forms.Form):
    tenant = TenantField(preselected=True)
    name = LineField(label=_("Name"), max_length=LONGEST_NAME, help_text=_("Contexts show it to the members’ agents."))
    kind = forms.ChoiceField(label=_("Kind"), choices=MemoryGroup.Kind.choices, widget=UnfoldAdminSelectWidget)
    members = LinesField(
        label=_("Members"),
        longest=255,
        most=MOST_MEMBERS,
        help_text=_("One end user per line, by the external id or the name. You can add more later."),
    )

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.POST if request.method == "POST" else None)
        self.fields["tenant"].queryset = tenants_of(request.user)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if "tenant" in data and "members" in data:
            # The choice of tenants is limited to those of the operator.
            found = [(words, *find_person(data["tenant"], words)) for words in data["members"]]
            for words, person, why_not in found:
                if person is None:
                    self.add_error("members", f"{words}: {why_not}")
            data["people"] = [person for _words, person, _why_not in found if person]
        return data


class RenameForm(VerbForm):
    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME)
    done = _("The group has another name.")
    calls = staticmethod(change_group)

    def values_of(self, record: MemoryGroup) -> dict[str, Any]:
        return {"name": record.name}

    def arguments(self) -> dict[str, Any]:
        return {"group_id": self.record.pk, "name": self.cleaned_data["name"]}


class AddMemberForm(VerbForm):
    user_id = forms.CharField(label=_("End user"), max_length=255, help_text=_("The id that the application uses."))
    may_write = forms.BooleanField(
        label=_("May write"), required=False, initial=True, help_text=_("Facts can be stated as theirs.")
    )
    done = _("The end user is a member. Their agents get the facts of the group.")

    def values_of(self, record: MemoryGroup) -> dict[str, Any]:
        return {"may_write": True}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        given = self.cleaned_data
        person = EndUser.objects.called(self.record.tenant, given["user_id"]).first()
        if person is None:
            raise NotFound(gettext("There is no end user with this id."))
        set_member(group_id=self.record.pk, end_user=person, may_write=given["may_write"], actor=actor, now=now)
        return str(self.done)


class RemoveMemberForm(VerbForm):
    member = forms.UUIDField(widget=forms.HiddenInput)
    done = _("The end user left the group. What they said stays; you can add them again.")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        found = GroupMember.objects.select_related("end_user__merged_into")
        member = found.filter(group=self.record, pk=self.cleaned_data["member"]).first()
        if member is None:
            raise NotFound
        person = member.end_user.merged_into or member.end_user
        remove_member(group_id=self.record.pk, end_user=person, actor=actor, now=now)
        return str(self.done)


class DeleteFactForm(VerbForm):
    fact = forms.UUIDField(widget=forms.HiddenInput)
    done = _("The fact is deleted. You can restore it here.")
    calls: ClassVar[Callable[..., Any]] = staticmethod(delete_group_fact)

    def arguments(self) -> dict[str, Any]:
        fact = GroupFact.objects.filter(group=self.record, pk=self.cleaned_data["fact"]).first()
        if fact is None:
            raise NotFound
        return {"fact_id": fact.pk}


class RestoreFactForm(DeleteFactForm):
    done = _("The fact is restored. The members’ agents are told it again.")
    calls = staticmethod(restore_group_fact)


class DeleteGroupForm(VerbForm):
    done = _("The group is deleted. You can restore it here.")
    calls: ClassVar[Callable[..., Any]] = staticmethod(delete_group)

    def arguments(self) -> dict[str, Any]:
        return {"group_id": self.record.pk}


class RestoreGroupForm(DeleteGroupForm):
    done = _("The group is restored, with its members and facts.")
    calls = staticmethod(restore_group)


class MemoryGroupPage(RecordPage):
    page_template = "memories/memory_group.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "rename": RenameForm,
        "add_member": AddMemberForm,
        "remove_member": RemoveMemberForm,
        "delete_fact": DeleteFactForm,
        "restore_fact": RestoreFactForm,
        "delete": DeleteGroupForm,
        "restore": RestoreGroupForm,
    }
    list_display = ("named", "members_counted", "facts_counted", "state", "made")
    list_filter = ("kind", "tenant")
    list_select_related = ("tenant",)
    search_fields = ("name",)
    search_help_text = _("Search by name")
    ordering = ("-created_at", "-id")
    empty_title = _("No groups yet")
    empty_hint = _("Make one here, or let applications make them with POST /api/v1/groups.")
    made = moment_column(_("Created"), "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryGroup]:
        rows: QuerySet[MemoryGroup] = super().get_queryset(request)
        return rows.annotate(
            member_count=_counted(GroupMember.objects.filter(end_user__merged_into=None)),
            fact_count=_counted(GroupFact.objects.present()),
        )

    @column(_("Group"))
    def named(self, group: MemoryGroup) -> SafeString:
        return cells.two_lines(group.name, group.get_kind_display())

    @column(_("Members"), ordering="member_count")
    def members_counted(self, group: MemoryGroup) -> int:
        count: int = group.member_count  # type: ignore[attr-defined]  # annotated
        return count

    @column(_("Facts"), ordering="fact_count")
    def facts_counted(self, group: MemoryGroup) -> int:
        count: int = group.fact_count  # type: ignore[attr-defined]  # annotated
        return count

    @column(_("Status"), label={"active": "success", "trashed": "danger"})
    def state(self, group: MemoryGroup) -> tuple[str, str]:
        return ("trashed", gettext("Deleted")) if group.trashed_at else ("active", gettext("Active"))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may change groups may make some, too."""
        return bool(self.has_change_permission(request))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = AddGroupForm(request)
        status = 400 if form.is_bound else 200
        if form.is_valid():
            given = {name: form.cleaned_data[name] for name in ("tenant", "name", "kind")}
            people = form.cleaned_data["people"]
            try:
                group = create_group(**given, members=people, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                status = add_refusal(form, error)
            else:
                messages.success(request, gettext("The group is created. Its members’ agents get its facts."))
                return HttpResponseRedirect(url_of(group))
        shown = {"title": gettext("New group of people"), "opts": self.opts, "form": form}
        return render_page(request, "memories/memory_group_add.html", status=status, **shown)

    def gather(self, request: HttpRequest, record: MemoryGroup) -> dict[str, Any]:
        facts = GroupFact.objects.of(record.tenant, record).select_related("about")
        facts = facts.prefetch_related("evidence__end_user").order_by("-said_at", "-id")
        members = GroupMember.objects.filter(group=record, end_user__merged_into=None).select_related("end_user")
        return {
            "group": record,
            "members": members.order_by("created_at", "id"),
            "facts": facts.filter(trashed_at=None)[:SHOWN],
            "deleted": facts.exclude(trashed_at=None)[:SHOWN],
            "most": SHOWN,
            "trash_days": conf.rules(record.tenant).trash_days,
        }


def _counted(rows: QuerySet[Any]) -> Coalesce:
    """How many of these rows a group has, as a subquery."""
    of_group = rows.filter(group=OuterRef("pk")).order_by().values("group")
    return Coalesce(Subquery(of_group.annotate(count=Count("pk")).values("count")), 0, output_field=IntegerField())
