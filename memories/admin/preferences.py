"""An operator's own page: language, time zone, theme."""

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget

from memories import curation
from memories.admin.fields import LineField, check_zone
from memories.admin.page import actor_of
from memories.models import Language, Operator


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        required=False,
        choices=[("", gettext_lazy("What the browser asks for")), *Language.choices],
        widget=UnfoldAdminSelectWidget,
    )
    time_zone = LineField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        validators=[check_zone],
        help_text=gettext_lazy("Every time on the pages is told in it: like Asia/Shanghai, or UTC."),
    )


def urls() -> list[URLPattern]:
    return [path("preferences/", admin.site.admin_view(preferences), name="preferences")]


def preferences(request: HttpRequest) -> HttpResponse:
    """The signed-in operator's own, whatever else they may do."""
    operator = request.user
    if not isinstance(operator, Operator):
        raise PermissionDenied
    if request.method == "POST":
        form = PreferencesForm(request.POST)
        if form.is_valid():
            return _save(request, operator, form)
    else:
        form = PreferencesForm(initial={"language": operator.language, "time_zone": operator.time_zone})
    context = {**admin.site.each_context(request), "title": _("Preferences"), "form": form}
    return TemplateResponse(request, "memories/preferences.html", context, status=400 if form.errors else 200)


def _save(request: HttpRequest, operator: Operator, form: PreferencesForm) -> HttpResponse:
    chosen = form.cleaned_data
    curation.set_preferences(operator=operator, **chosen, actor=actor_of(request), now=timezone.now())
    # In the language that the next page speaks.
    with translation.override(chosen["language"] or translation.get_language_from_request(request)):
        messages.success(request, _("Your preferences are saved."))
    return HttpResponseRedirect(request.path)
