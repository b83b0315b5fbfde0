"""Items of the store: the list, an item with its value, and its deletion."""

import json
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage, VerbForm
from memories.curation.store_items import delete_store_item
from memories.invisible import strip_invisible
from memories.models import APIKey, StoreItem


class DeleteItemForm(VerbForm):
    needs_permissions = ("memories.delete_storeitem",)
    calls = staticmethod(delete_store_item)
    done = _("%(storeitem)s is deleted.")
    # When it was last written, as the operator saw it. If somebody has written it since, the page is shown again.
    expected = forms.CharField(widget=forms.HiddenInput)

    def values_of(self, record: StoreItem) -> dict[str, Any]:
        return {"expected": record.updated_at.isoformat()}

    def clean_seen(self) -> datetime:
        expected = parse_datetime(self.cleaned_data["expected"])
        if expected is None or expected.tzinfo is None:
            raise forms.ValidationError(_("Open the page of the item again."))
        return expected

    def arguments(self) -> dict[str, Any]:
        return {"item_id": self.record.pk, "expected": self.cleaned_data["expected"]}

    def leads_to(self) -> str:
        return reverse("admin:memories_storeitem_changelist")


class StoreItemPage(RecordPage):
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"delete": DeleteItemForm}
    page_template = "memories/store_item.html"
    list_display = ("name", "person", "updated", "expires")
    list_filter = ("tenant",)
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant")
    search_fields = ("namespace", "key")
    search_help_text = _("Search by namespace or key")
    ordering = ("-updated_at", "-id")
    updated = moment_column(_("Written"), "updated_at")
    expires = moment_column(_("Expires"), "expires_at", none=_("never"))
    empty_title = _("No items yet")
    empty_hint = _("An agent that uses the hub as LangGraph’s store keeps its items here.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[StoreItem]:
        rows: QuerySet[StoreItem] = super().get_queryset(request)
        is_list = request.resolver_match is not None and not request.resolver_match.kwargs
        return rows.defer("value", "index_paths") if is_list else rows

    @column(_("Item"))
    def name(self, item: StoreItem) -> SafeString:
        return cells.two_lines(strip_invisible(item.key), " › ".join(map(strip_invisible, item.labels)))

    @column(_("End user"))
    def person(self, item: StoreItem) -> SafeString | str:
        return cells.person(item.end_user) if item.end_user else "–"

    def gather(self, request: HttpRequest, record: StoreItem) -> dict[str, Any]:
        person = record.end_user
        return {
            "item": record,
            "labels": [strip_invisible(label) for label in record.labels],
            "key": strip_invisible(record.key),
            "person": person and (person.merged_into or person),
            "value": json.dumps(record.value, ensure_ascii=False, indent=2, sort_keys=True),
            "written_by": APIKey.objects.filter(pk=record.key_id).first() if record.key_id else None,
        }
