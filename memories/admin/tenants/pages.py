"""Tenants: the applications that use the hub, with their own numbers for the rules."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from memories import conf
from memories.admin.lists.columns import moment_column
from memories.admin.site.fields import LinesField, PhrasesField, check_zone
from memories.admin.site.page import LOOK_AGAIN, actor_of, show_again
from memories.admin.site.wording import CUT_OUT
from memories.admin.tenants.language_model import in_force
from memories.admin.tenants.numbers import number_fields, number_groups, numbers_of, values_of
from memories.admin.tenants.off_boarding import OffBoardingPage
from memories.admin.tenants.overview import overview
from memories.curation.marks import mark_of
from memories.curation.tenants.settings import SETTINGS, is_color, save_tenant
from memories.files.dream_files import MOST_LINES, wrong_line
from memories.models import Operator, Tenant
from memories.models.memories.files import LONGEST_PATH
from memories.models.people.tenants import PersonMay
from memories.store.namespaces import LONGEST_PATTERN, MOST_PATTERNS, is_pattern
from memories.text.signal_phrases import LONGEST, MOST_PHRASES, SHORTEST
from memories.text.signals import KINDS

# The verb removes secrets from these fields.
REDACTED = ("name", "extraction_guidance", "signal_phrases", "file_seed", "dream_guide")


def _default(name: str) -> Callable[[], Any]:
    """What makes the model's: a field that a form declares itself does not begin with it."""
    field: Any = Tenant._meta.get_field(name)
    made: Callable[[], Any] = field.get_default
    return made


class TenantForm(forms.ModelForm[Tenant]):
    signal_phrases = PhrasesField(
        label=_("Trigger phrases"),
        help_text=format_lazy(
            _(
                "One a line, like “correction: back to square one” or “goal: our target is … this year”. "
                "Kinds: {kinds}. A kind that is named here is found by these phrases alone, in any case; at most "
                "{most} of {shortest} to {longest} characters. Empty: the hub's own patterns."
            ),
            kinds=", ".join(KINDS),
            most=MOST_PHRASES,
            shortest=SHORTEST,
            longest=LONGEST,
        ),
    )

    dream_files = LinesField(
        longest=LONGEST_PATH,
        most=MOST_LINES,
        rows=6,
        initial=_default("dream_files"),
        label=_("Files of dreams"),
        help_text=Tenant._meta.get_field("dream_files").help_text,
    )

    person_namespaces = LinesField(
        longest=LONGEST_PATTERN,
        most=MOST_PATTERNS,
        initial=_default("person_namespaces"),
        label=_("Namespaces of people"),
        help_text=Tenant._meta.get_field("person_namespaces").help_text,
    )

    person_may = forms.MultipleChoiceField(
        label=_("What the person may do there"),
        help_text=Tenant._meta.get_field("person_may").help_text,
        choices=PersonMay.choices,
        initial=_default("person_may"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = Tenant
        fields = "__all__"  # noqa: DJ007  (the page's fieldsets name them)
        help_texts = {
            "capture": _("If off: posted turns are answered 202 and not stored."),
            "serve": _("If off: contexts are empty."),
            "trust_assistant": _(
                "If on: facts that only the assistant stated are served without review. What users say still takes "
                "precedence."
            ),
            "person_page": _(
                "If on: the application can make links with which an end user opens a page of their own memory."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = conf.own_numbers(self.instance.numbers)
        self.fields.update(number_fields(conf.hub_rules(), own))
        self.initial.update(values_of(own))
        self.fields["expected"] = forms.CharField(required=False, widget=forms.HiddenInput)
        self.initial["expected"] = mark_of(self.instance, SETTINGS)

    def clean_time_zone(self) -> str:
        name: str = self.cleaned_data["time_zone"]
        check_zone(name)
        return name

    def clean_person_color(self) -> str:
        color: str = self.cleaned_data["person_color"]
        if not is_color(color):
            raise forms.ValidationError(_("Give a colour such as #0f766e, or nothing."), code="color")
        return color

    def clean_file_seed(self) -> str:
        # A browser sends each end of a line as two characters. Agents edit by exact text, and lines end with one.
        text: str = self.cleaned_data["file_seed"].replace("\r\n", "\n")
        return f"{text}\n" if text else ""

    def clean_dream_files(self) -> list[str]:
        lines: list[str] = self.cleaned_data["dream_files"]
        wrong = wrong_line(lines)
        if wrong is not None:
            message = _("“%(path)s” is no path of a file, like /memory/MEMORY.md, nor of a folder, like /skills/.")
            raise forms.ValidationError(message % {"path": wrong}, code="path")
        return lines

    def clean_person_namespaces(self) -> list[str]:
        patterns: list[str] = self.cleaned_data["person_namespaces"]
        for pattern in patterns:
            if not is_pattern(pattern):
                message = _("“%(pattern)s” is no pattern: labels with periods between them, of which one is {user_id}.")
                raise forms.ValidationError(message % {"pattern": pattern}, code="pattern")
        return patterns

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        # The lock lasts until the end of the request: nobody can change the row between this check and the save.
        current = Tenant.objects.select_for_update().filter(pk=self.instance.pk).first()
        if data.get("expected") and current and mark_of(current, SETTINGS) != data["expected"]:
            self.add_error(None, LOOK_AGAIN)
            self.initial["expected"] = mark_of(current, SETTINGS)
            show_again(self)
        self.instance.numbers = numbers_of(data)
        for name, why in conf.contradictions(conf.rules(self.instance)):
            self.add_error(name, why)
        return data


class TenantPage(OffBoardingPage):
    tenant_path = "pk"
    form = TenantForm
    change_form_template = "memories/tenant.html"
    csv_columns = ("id", "slug", "name", "time_zone", "capture", "serve", "offboarded_at", "created_at")
    list_display = ("slug", "name", "capture", "serve", "created")
    search_fields = ("slug", "name")
    search_help_text = _("Search by slug or name")
    ordering = ("slug",)
    created = moment_column(_("Created"), "created_at")
    empty_title = _("No tenants yet")
    empty_hint = _("A tenant is an application that uses the hub. API keys and end users belong to a tenant.")
    fieldsets = (
        (None, {"fields": ("slug", "name", "time_zone", "language", ("capture", "serve"))}),
        (_("What to remember"), {"fields": ("memory_of", "extraction_guidance", "trust_assistant", "signal_phrases")}),
        (_("What was said"), {"fields": ("context_log",)}),
        (_("Memory files"), {"fields": ("file_seed", "dream_guide", "dream_model", "dream_files")}),
        (_("Memory store"), {"fields": ("person_namespaces",)}),
        (_("Page for the person"), {"fields": ("person_page", "person_may", "person_color")}),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        # Operators limited to tenants would not see the new one.
        sees_all = isinstance(request.user, Operator) and request.user.all_tenants
        return sees_all and bool(super().has_add_permission(request))

    def get_readonly_fields(self, request: HttpRequest, obj: Tenant | None = None) -> tuple[str, ...]:
        # Commands and other systems use the slug.
        if obj is None:
            return ()
        return ("slug", "capture", "serve") if obj.offboarded_at else ("slug",)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **more: Any
    ) -> HttpResponse:
        tenant: Tenant | None = context["original"]
        context["number_groups"] = number_groups(context["adminform"].form)
        context["unusable"] = conf.unusable_numbers(tenant.numbers) if tenant else []
        if tenant:
            now = timezone.now()
            context |= {"in_force": in_force(tenant, now=now), **overview(request, tenant, now=now)}
        return super().render_change_form(request, context, *args, **more)  # type: ignore[no-any-return]

    def response_add(self, request: HttpRequest, obj: Tenant, post_url_continue: str | None = None) -> HttpResponse:
        """Back to the new API key, if its form led here."""
        response: HttpResponse = super().response_add(request, obj, post_url_continue)
        if request.GET.get("then") == "key" and request.user.has_perm("memories.add_apikey"):
            return HttpResponseRedirect(f"{reverse('admin:memories_apikey_add')}?tenant={obj.pk}")
        return response

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        saved = save_tenant(tenant=obj, actor=actor_of(request), now=timezone.now())
        if any(form.cleaned_data[name] != getattr(saved, name) for name in form.changed_data if name in REDACTED):
            messages.warning(request, CUT_OUT.strip())
        for warning in conf.warnings(conf.rules(saved), saved.numbers):
            messages.warning(request, warning)
