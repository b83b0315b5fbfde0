"""Operators and groups: Django's own forms in Unfold's clothes, each change in the audit trail."""

import uuid
from typing import Any

from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model
from django.http import HttpRequest
from django.utils import timezone
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from memories import audit
from memories.admin import cells
from memories.admin.columns import column
from memories.admin.fields import check_zone
from memories.admin.page import Page, actor_of
from memories.models import Operator


class OperatorChangeForm(UserChangeForm):  # type: ignore[misc]  # Unfold has no types
    class Meta(UserChangeForm.Meta):  # type: ignore[misc]
        model = Operator

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        check_zone(name)
        return name


class OperatorCreationForm(UserCreationForm):  # type: ignore[misc]  # Unfold has no types
    class Meta(UserCreationForm.Meta):  # type: ignore[misc]
        model = Operator


class AuditedPage(Page):
    """Django's forms save these by themselves; what was done goes to the trail as well as to Django's log."""

    tenant_path = None

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._audit(request, obj, "add")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        self._audit(request, obj, "update")
        return super().log_change(request, obj, message)

    def _audit(self, request: HttpRequest, obj: Model, verb: str) -> None:
        # A group's id is a small number: the trail's ids are UUIDs.
        object_id = obj.pk if isinstance(obj.pk, uuid.UUID) else uuid.UUID(int=obj.pk)
        audit.record(
            actor=actor_of(request), verb=verb, target=obj, object_id=object_id, tenant=None, now=timezone.now()
        )


class OperatorPage(UserAdmin[Operator], AuditedPage):  # type: ignore[misc]
    form = OperatorChangeForm
    add_form = OperatorCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_superuser", "signed_in")
    list_filter = ("is_active", "is_superuser", "groups")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": (("first_name", "last_name"), ("email", "time_zone"))}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
    )
    search_help_text = "Search by name or mail"

    @column("Last sign-in", ordering="last_login")
    def signed_in(self, operator: Operator) -> Any:
        return cells.moment(operator.last_login)


class GroupPage(GroupAdmin, AuditedPage):  # type: ignore[misc]
    empty_title = "No groups yet"
    empty_hint = "A group gives several operators the same permissions."


OPERATOR_PAGES: tuple[tuple[type[Model], type[Page]], ...] = ((Operator, OperatorPage), (Group, GroupPage))
