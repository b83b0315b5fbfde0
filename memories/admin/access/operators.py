"""Pages of operators and groups."""

from http import HTTPStatus
from typing import Any, ClassVar

from allauth.socialaccount.models import SocialAccount
from django import forms
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters

from memories.admin.access import fresh, invitations
from memories.admin.access.identity import provider_name
from memories.admin.access.operator_forms import (
    INVITATION,
    GroupForm,
    InviteForm,
    NewOperatorForm,
    NewPasswordForm,
    OperatorForm,
    RemoveSecondFactorForm,
    RevokeInvitationForm,
    UnlinkProviderForm,
)
from memories.admin.access.permissions import ACTIONS, held_by, rows_of
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import HubModelAdmin, RecordPage, VerbForm, actor_of, render_page, url_of
from memories.curation.access.invitations import add_invited_operator, sends_to
from memories.curation.access.operators import add_operator
from memories.curation.access.powers import PermissionSet, powers_of, powers_of_group
from memories.curation.access.second_factors import has_second_factor
from memories.exceptions import MemoryHubError
from memories.models import Operator
from memories.models.access.roles import line_of, name_of


class AddablePage(RecordPage):
    """A page that can also create records, with a form of ours."""

    add_template: ClassVar[str]
    add_title: ClassVar[Any]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(HubModelAdmin.has_add_permission(self, request))

    def new_form(self, request: HttpRequest) -> forms.Form:
        raise NotImplementedError

    def make(self, request: HttpRequest, form: Any) -> Model:
        """Call the verb. Errors: MemoryHubError."""
        raise NotImplementedError

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        if challenge := fresh.required(request):
            return challenge
        form, status = self.new_form(request), HTTPStatus.BAD_REQUEST if request.method == "POST" else HTTPStatus.OK
        if form.is_valid():
            try:
                made = self.make(request, form)
            except MemoryHubError as error:
                form.add_error(None, error.detail)
                status = HTTPStatus(error.status)
            else:
                return self.after_adding(request, form, made)
        context = {"title": self.add_title, "opts": self.opts, "form": form, **self.about(form)}
        return render_page(request, self.add_template, status=status, **context)

    def after_adding(self, request: HttpRequest, form: Any, made: Any) -> HttpResponse:
        messages.success(request, _("Created."))
        return HttpResponseRedirect(url_of(made))

    def about(self, form: forms.Form) -> dict[str, Any]:
        """The template's context of the form besides its fields."""
        return {}


# Error reports must not contain passwords.
@method_decorator(sensitive_post_parameters(), name="carry_out")
@method_decorator(sensitive_post_parameters(), name="add_view")
class OperatorPage(AddablePage):
    tenant_path = None
    page_template = "memories/operator.html"
    add_template, add_title = "memories/operator_add.html", gettext_lazy("New operator")
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "update": OperatorForm,
        "invite": InviteForm,
        "revoke_invitation": RevokeInvitationForm,
        "password": NewPasswordForm,
        "second_factor": RemoveSecondFactorForm,
        "unlink": UnlinkProviderForm,
    }
    list_display = ("operator", "mail", "roles", "sees", "may_sign_in", "signed_in")
    list_filter = ("is_active", "groups")
    search_fields = ("username", "first_name", "last_name", "email")
    search_help_text = gettext_lazy("Search by name or mail")
    ordering = ("username",)
    signed_in = moment_column(gettext_lazy("Last sign-in"), "last_login", none=gettext_lazy("never"))
    empty_title = gettext_lazy("No operators yet")
    empty_hint = gettext_lazy("Operators are members of staff who sign in here. Add an operator and assign a role.")

    @column(gettext_lazy("Email address"), ordering="email")
    def mail(self, operator: Operator) -> str:
        return operator.email or "–"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Operator]:
        """All. Operators limited to tenants see themselves, and operators who have no other tenants."""
        rows: QuerySet[Operator] = super().get_queryset(request).prefetch_related("groups", "tenants")
        if not isinstance(request.user, Operator) or request.user.all_tenants:
            return rows
        # Not the tenants themselves: row level security hides those that the operator does not see.
        links = Operator.tenants.through._default_manager.all()
        own = links.filter(operator=request.user).values("tenant")
        beyond = links.filter(operator=OuterRef("pk")).exclude(tenant__in=own)
        return rows.filter(Q(pk=request.user.pk) | Q(~Exists(beyond), all_tenants=False))

    def has_change_permission(self, request: HttpRequest, obj: Operator | None = None) -> bool:
        if not super().has_change_permission(request, obj):
            return False
        return obj is None or _covers(request.user, powers_of(obj))

    @column(gettext_lazy("Operator"), ordering="username")
    def operator(self, operator: Operator) -> SafeString:
        return cells.two_lines(operator.username, operator.get_full_name())

    @column(gettext_lazy("Roles"))
    def roles(self, operator: Operator) -> str:
        names = [name_of(group.name) for group in operator.groups.all()]
        return ", ".join([_("superuser"), *names] if operator.is_superuser else names) or "–"

    @column(gettext_lazy("Tenants"))
    def sees(self, operator: Operator) -> str:
        if operator.all_tenants:
            return _("all")
        return ", ".join(tenant.slug for tenant in operator.tenants.all()) or _("none")

    @column(gettext_lazy("Can sign in"), label={"yes": "success", "no": "danger", "invited": "info", "late": "warning"})
    def may_sign_in(self, operator: Operator) -> tuple[str, str]:
        if operator.is_active and operator.invitation and not operator.has_usable_password():
            late = invitations.is_late(operator, now=timezone.now())
            return ("late", _("invitation expired")) if late else ("invited", _("invited"))
        return ("yes", _("yes")) if operator.is_active else ("no", _("no"))

    def gather(self, request: HttpRequest, record: Operator) -> dict[str, Any]:
        return {
            "operator": record,
            "roles": [(name_of(group.name), line_of(group.name)) for group in record.groups.order_by("name")],
            "tenants": record.tenants.order_by("slug"),
            "has_factor": has_second_factor(record),
            "linked": SocialAccount.objects.filter(user=record).exists(),
            "provider": provider_name(),
            "sends_mail": sends_to(record),
            "late": invitations.is_late(record, now=timezone.now()),
        }

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        page = super().show(request, record, tried=tried, status=status)
        form = (page.context_data or {})["forms"].get("update")
        if isinstance(form, OperatorForm):
            form.offer(request.user)
        return page

    def new_form(self, request: HttpRequest) -> NewOperatorForm:
        return NewOperatorForm(request.POST if request.method == "POST" else None, operator=request.user)

    def make(self, request: HttpRequest, form: NewOperatorForm) -> Operator:
        given: dict[str, Any] = {"draft": form.draft(), "actor": actor_of(request), "now": timezone.now()}
        if form.cleaned_data["ways_in"] != INVITATION:
            return add_operator(password=None, **given)
        operator, form.secret = add_invited_operator(**given)
        return operator

    def after_adding(self, request: HttpRequest, form: NewOperatorForm, made: Operator) -> HttpResponse:
        if form.secret:
            return invitations.hand_over(request, made, form.secret)
        return super().after_adding(request, form, made)

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        if isinstance(form, InviteForm):
            return invitations.hand_over(request, form.record, form.secret)
        return super().answer(request, form, done)


class GroupPage(AddablePage):
    tenant_path = None
    id_kind = "int"
    page_template = "memories/group.html"
    add_template, add_title = "memories/group_add.html", gettext_lazy("New role")
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"update": GroupForm}
    list_display = ("group", "members", "permission_count")
    ordering = ("name",)
    empty_title = gettext_lazy("No roles yet")
    empty_hint = gettext_lazy("A role gives several operators the same permissions.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        rows: QuerySet[Group] = super().get_queryset(request)
        return rows.annotate(member_count=Count("user", distinct=True), given_count=Count("permissions", distinct=True))

    def has_add_permission(self, request: HttpRequest) -> bool:
        # A group applies in all tenants. Every page asks this, so it must not query.
        sees_all = isinstance(request.user, Operator) and request.user.all_tenants
        return sees_all and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        if not super().has_change_permission(request, obj):
            return False
        return obj is None or _covers(request.user, powers_of_group(held_by(obj)))

    @column(gettext_lazy("Role"), ordering="name")
    def group(self, group: Group) -> SafeString:
        return cells.explained(name_of(group.name), line_of(group.name))

    @column(gettext_lazy("Members"))
    def members(self, group: Any) -> int:
        return int(group.member_count)

    @column(gettext_lazy("Permissions"))
    def permission_count(self, group: Any) -> int:
        return int(group.given_count)

    def gather(self, request: HttpRequest, record: Group) -> dict[str, Any]:
        shown = {"name": name_of(record.name), "line": line_of(record.name)}
        return {"group": record, **shown, **self.about(GroupForm(record=record))}

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        page = super().show(request, record, tried=tried, status=status)
        if tried is not None:
            (page.context_data or {}).update(self.about(tried))
        return page

    def about(self, form: forms.Form) -> dict[str, Any]:
        return {"actions": ACTIONS.values(), "rows": rows_of(form["permissions"])}

    def new_form(self, request: HttpRequest) -> GroupForm:
        return GroupForm(request.POST if request.method == "POST" else None, record=Group())

    def make(self, request: HttpRequest, form: GroupForm) -> Group:
        form.carry_out(actor=actor_of(request), now=timezone.now())
        return form.record


def _covers(operator: Operator | AnonymousUser, powers: PermissionSet) -> bool:
    """Whether the operator has all of these powers."""
    return isinstance(operator, Operator) and powers_of(operator).cover(powers)
