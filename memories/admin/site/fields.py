"""Form fields of the admin with Unfold's widgets, and validators of time zones and languages."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.models import ModelChoiceIterator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from memories.models import EndUser, Tenant
from memories.text import signal_phrases
from memories.time_zones import is_zone

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*")


def check_zone(name: str) -> None:
    if not is_zone(name):
        raise ValidationError(_("This is not a time zone. Use a name such as Asia/Shanghai or UTC."), code="zone")


def check_language(tag: str) -> None:
    if not _LANGUAGE.fullmatch(tag):
        raise ValidationError(_("This is not a language tag. Use a tag such as zh-CN or en."), code="language")


class DayInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """The browser's own date field: it needs no script, and phones have their own picker."""

    input_type = "date"


class LineField(forms.CharField):
    """One line of text."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("widget", UnfoldAdminTextInputWidget)
        super().__init__(**kwargs)


class _SuggestingField(LineField):
    """One record by the application's id: while somebody types, suggestions.js suggests those that fit."""

    # What memories/admin/site/palette.py looks for.
    finds = ""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.widget.attrs["data-finds"] = self.finds

    def within(self, tenant: Tenant, person: EndUser | None = None) -> None:
        """Suggest those of this tenant, or end user, in a form that does not ask for one."""
        self.widget.attrs["data-tenant"] = str(tenant.pk)
        if person:
            self.widget.attrs["data-person"] = person.external_id


class PersonField(_SuggestingField):
    """An end user, by the external id or the name."""

    finds = "people"


class AgentField(_SuggestingField):
    """An agent (agent_id in the API); those that spoke with the end user whom the form names, if it names one."""

    finds = "agents"


class SessionField(_SuggestingField):
    """A session (session_id in the API); those of the end user whom the form names, if it names one."""

    finds = "sessions"


class _TenantChoices(ModelChoiceIterator[Tenant]):
    """The empty choice stands before two tenants or more: of one there is nothing to choose. Without any it says so."""

    def __iter__(self) -> Iterator[Any]:
        choices = list(super().__iter__())
        tenants = [choice for choice in choices if choice[0]]
        if not tenants:
            yield "", _("No tenant yet: create one under Tenants, or ask an administrator")
        else:
            yield from choices if len(tenants) > 1 else tenants


class TenantField(forms.ModelChoiceField[Tenant]):
    """The tenant that a form is about; the form's `__init__` sets the queryset to those of the operator.

    `preselected`: of several the first is chosen already.
    """

    iterator = _TenantChoices

    def __init__(self, *, preselected: bool = False) -> None:
        super().__init__(
            Tenant.objects.none(),
            label=gettext_lazy("Tenant"),
            widget=UnfoldAdminSelectWidget,
            empty_label=None if preselected else gettext_lazy("Choose a tenant"),
        )


class TextField(forms.CharField):
    """Several lines of text."""

    def __init__(self, *, rows: int = 3, **kwargs: Any) -> None:
        super().__init__(widget=UnfoldAdminTextareaWidget(attrs={"rows": rows}), **kwargs)


class LinesField(forms.CharField):
    """A list of short texts, one a line."""

    def __init__(self, *, longest: int, most: int = 20, rows: int = 3, **kwargs: Any) -> None:
        self.longest, self.most = longest, most
        kwargs.setdefault("help_text", gettext_lazy("One per line."))
        super().__init__(widget=UnfoldAdminTextareaWidget(attrs={"rows": rows}), required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        lines = [line.strip() for line in (super().to_python(value) or "").splitlines() if line.strip()]
        if len(lines) > self.most:
            message = _("There are %(count)d lines. The limit is %(most)d.")
            raise ValidationError(message % {"count": len(lines), "most": self.most}, code="most")
        if any(len(line) > self.longest for line in lines):
            message = _("A line can have at most %(longest)d characters.")
            raise ValidationError(message % {"longest": self.longest}, code="longest")
        return lines


class VersionsField(forms.Field):
    """The rows of a preview with the versions that it showed, a hidden input for each.

    Its value is `id:version` of the row and, after spaces, of the other records that it is about. The field takes a
    list of rows, each as a list of records, and returns the version by id for each row, its own first.
    """

    widget = forms.MultipleHiddenInput

    def prepare_value(self, value: Any) -> list[str]:
        rows = value or []
        return [
            row if isinstance(row, str) else " ".join(f"{record.pk}:{record.version}" for record in row) for row in rows
        ]

    def to_python(self, value: Any) -> list[dict[uuid.UUID, int]]:
        try:
            pairs = [[word.partition(":") for word in row.split()] for row in value or []]
            rows = [{uuid.UUID(pk): int(version) for pk, _colon, version in row} for row in pairs]
        except ValueError:
            rows = [{}]
        if not all(rows):
            raise ValidationError(_("The selection could not be read. Choose again."), code="seen")
        return rows


class PhrasesField(forms.CharField):
    """The signal phrases of a tenant: a line is a kind and a phrase. The value is a mapping."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(widget=UnfoldAdminTextareaWidget(attrs={"rows": 6}), required=False, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return signal_phrases.shown(value) if isinstance(value, dict) else value

    def to_python(self, value: Any) -> Any:
        try:
            return signal_phrases.parse(super().to_python(value) or "")
        except ValueError as error:
            raise ValidationError(str(error), code="phrases") from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def run_validators(self, value: Any) -> None:
        """None: those of CharField expect text, and parse() has checked the mapping."""
