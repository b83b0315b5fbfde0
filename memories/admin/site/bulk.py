"""One verb on many rows of a list: a preview, a confirmation, the result, and one undo for all of them."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from memories.admin.access import fresh
from memories.admin.site.fields import VersionsField
from memories.admin.site.page import RecordPage, actor_of, render_page, show_again
from memories.audit import Actor
from memories.curation.batches import MOST, TYPED_ABOVE, undo_batch
from memories.db import tenancy
from memories.exceptions import MemoryHubError
from memories.models import Batch
from memories.models.ids import new_id

# Of each row the versions that the preview showed: its own, and those of other records that it is about.
RowVersions = Mapping[uuid.UUID, Mapping[uuid.UUID, int]]


class BulkForm(forms.Form):
    """The confirmation of a preview: the rows as it showed them and, if they are many, their number typed."""

    # Made up here: a form that is sent twice is one batch.
    batch = forms.UUIDField(initial=new_id, widget=forms.HiddenInput)
    expected = VersionsField()
    typed = forms.IntegerField(
        label=gettext_lazy("How many are these?"),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )

    def __init__(self, data: Any = None, *, verb: str, rows: Sequence[Sequence[Model]] = ()) -> None:
        super().__init__(data, initial={"expected": rows}, auto_id="bulk_%s")
        self.verb_name = verb
        self.count = len(rows) if data is None else len(data.getlist("expected"))
        if self.count <= TYPED_ABOVE:
            del self.fields["typed"]
        else:
            text = _("Type %(count)d to confirm that you mean all of them.")
            self.fields["typed"].help_text = text % {"count": self.count}

    def clean_typed(self) -> int:
        typed: int = self.cleaned_data["typed"]
        if typed != self.count:
            raise forms.ValidationError(_("The number does not match. Nothing changed."), code="typed")
        return typed

    def carry_out(self, expected: RowVersions, *, actor: Actor, now: datetime) -> Batch:
        """Call the verb. Errors: InvalidInput, Conflict."""
        raise NotImplementedError


class BulkViews(RecordPage):
    """A list with verbs on many of its rows."""

    bulk_title: ClassVar[str | Promise]
    bulk_verbs: ClassVar[Iterable[str]]
    bulk_form: ClassVar[type[BulkForm]]
    bulk_template: ClassVar[str]
    batch_template: ClassVar[str]
    # What the change sets of a batch call the rows.
    step: ClassVar[str]

    def preview(
        self, request: HttpRequest, verb: str, rows: Sequence[Any], *, tried: BulkForm | None = None, status: int = 200
    ) -> HttpResponse:
        """What the verb would do. `tried` is a rejected confirmation: its input is kept, its rows are those of now."""
        expected = [self.records_of(row) for row in rows]
        if tried:
            tried.initial["expected"] = expected
            show_again(tried)
        form = tried or self.bulk_form(verb=verb, rows=expected)
        shown = {"title": self.bulk_title, "opts": self.opts, "verb": verb, "form": form, **self.effects(verb, rows)}
        return render_page(request, self.bulk_template, status=status, **shown)

    def records_of(self, row: Any) -> list[Model]:
        """The row and the other records whose versions the verb checks."""
        return [row]

    def effects(self, verb: str, rows: Sequence[Any]) -> dict[str, Any]:
        """The preview's context of the rows."""
        raise NotImplementedError

    def confirm(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Carry out the confirmed verb. If something is wrong, the preview is shown again."""
        form, status = self.bulk_form(request.POST, verb=verb), 400
        is_valid = form.is_valid()
        expected = {next(iter(row)): row for row in form.cleaned_data.get("expected", ())}
        rows = list(self.get_queryset(request).filter(pk__in=list(expected)[: MOST + 1]))
        if is_valid:
            if form.count > TYPED_ABOVE and (challenge := fresh.required(request)):
                return challenge
            try:
                visible = {row.pk: expected[row.pk] for row in rows}
                batch = form.carry_out(visible, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                form.add_error(None, error.detail)
                status = error.status
            else:
                return HttpResponseRedirect(reverse(f"admin:memories_{self.opts.model_name}_batch", args=[batch.pk]))
        return self.preview(request, verb, rows, tried=form, status=status)

    def show_batch(self, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        """What was done. A POST undoes it. Only for operators who can see all rows of the batch."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        batch = Batch.objects.filter(pk=batch_id, verb__in=self.bulk_verbs).select_related("operator").first()
        if batch is None:
            raise Http404
        # Also what row level security hides from this operator, so that it counts as more than they see.
        with tenancy.everything():
            undone_at = dict(batch.steps.exclude(**{self.step: None}).values_list(self.step, "undone_at"))
        rows = self.get_queryset(request).filter(pk__in=undone_at)
        if len(rows) < len(undone_at):
            raise Http404
        if request.method == "POST":
            undone = undo_batch(batch_id=batch.pk, actor=actor_of(request), now=timezone.now())
            messages.success(request, _("Undone: %(count)d.") % {"count": undone.counts["undone"]})
            return HttpResponseRedirect(request.path)
        left = list(undone_at.values()).count(None)
        shown = {"title": self.bulk_title, "opts": self.opts, "batch": batch, "rows": rows, "left": left}
        return render_page(request, self.batch_template, **shown)
