"""Tenants: the applications that use the hub, and their own numbers for the rules."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.utils import timezone

from memories import conf, curation
from memories.admin import cells
from memories.admin.columns import column
from memories.admin.fields import PhrasesField, check_zone
from memories.admin.page import Page, actor_of
from memories.admin.wording import CUT_OUT
from memories.models import Tenant
from memories.pipeline.signal_phrases import LONGEST, MOST_PHRASES, SHORTEST
from memories.pipeline.signals import KINDS

# Field → label, what it is, and its range; the hub's own number joins it in the form.
NUMBERS = {
    "debounce_seconds": ("Quiet time", "How long a session is quiet before extraction: 1–300 s"),
    "max_wait_seconds": ("Longest wait", "How long a turn waits at most: 1–3,600 s"),
    "lease_seconds": ("Lease", "When a claim on a batch ends: 2–3,600 s, longer than one model call"),
    "max_attempts": ("Attempts", "Failures before a batch is parked: 1–20"),
}


class TenantForm(forms.ModelForm[Tenant]):
    signal_phrases = PhrasesField(
        label="Signs",
        help_text="One a line, like “correction: back to square one” or “goal: our target is … this year”. Kinds: "
        f"{', '.join(KINDS)}. A kind that is named here is found by these phrases alone, in any case; at most "
        f"{MOST_PHRASES} of {SHORTEST} to {LONGEST} characters. Empty: the hub's own patterns.",
    )

    class Meta:
        model = Tenant
        fields = "__all__"  # noqa: DJ007  (the page's fieldsets name them)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        defaults = conf.hub_rules()
        for name, (label, text) in NUMBERS.items():
            if name in self.fields:
                self.fields[name].label = label
                self.fields[name].help_text = f"{text}. Empty: the hub's own, {getattr(defaults, name)}."

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        check_zone(name)
        return name

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        quiet = data.get("debounce_seconds") or conf.hub_rules().debounce_seconds
        longest = data.get("max_wait_seconds") or conf.hub_rules().max_wait_seconds
        if quiet > longest:
            self.add_error("max_wait_seconds", f"Turns wait {quiet} s for quiet: the longest wait cannot be shorter.")
        return data


class TenantPage(Page):
    form = TenantForm
    list_display = ("slug", "name", "capture", "serve", "created")
    search_fields = ("slug", "name")
    search_help_text = "Search by slug or name"
    ordering = ("slug",)
    empty_title = "No tenants yet"
    empty_hint = "A tenant is an application that uses the hub; its API keys and end users belong to it."
    fieldsets = (
        (None, {"fields": ("slug", "name", "time_zone", ("capture", "serve"))}),
        ("What to remember", {"fields": ("extraction_guidance", "trust_assistant", "signal_phrases")}),
        (
            "When to extract",
            {"fields": (("debounce_seconds", "max_wait_seconds"), ("lease_seconds", "max_attempts"))},
        ),
    )

    @column("Made", ordering="created_at")
    def created(self, tenant: Tenant) -> Any:
        return cells.moment(tenant.created_at)

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> tuple[str, ...]:
        # Commands and notes of other people name the slug.
        return ("slug",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        saved = curation.save_tenant(tenant=obj, actor=actor_of(request), now=timezone.now())
        if any(form.cleaned_data[name] != getattr(saved, name) for name in form.changed_data):
            messages.warning(request, CUT_OUT.strip())
