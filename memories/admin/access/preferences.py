"""What operators change of their own account: language, time zone, password."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.forms import AdminOwnPasswordChangeForm
from unfold.widgets import UnfoldAdminSelectWidget

from memories.admin.access.operator_forms import SwitchField
from memories.admin.site.fields import LineField, check_zone
from memories.admin.site.page import actor_of, render_page
from memories.audit import Actor
from memories.curation.access.operators import set_password, set_preferences
from memories.models import Language, Operator


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        required=False,
        choices=[("", gettext_lazy("Browser default")), *Language.choices],
        widget=UnfoldAdminSelectWidget,
    )
    time_zone = LineField(
        label=gettext_lazy("Time zone"),
        max_length=64,
        validators=[check_zone],
        help_text=gettext_lazy("Pages show times in this time zone, such as Asia/Shanghai or UTC."),
    )
    mail_cases = SwitchField(
        label=gettext_lazy("Mail about privacy cases"),
        help_text=gettext_lazy("When one is opened, 7 and 2 days before its day, and when it is overdue."),
    )
    mail_queues = SwitchField(
        label=gettext_lazy("Mail about long queues"),
        help_text=gettext_lazy("When sessions wait for extraction for 15 minutes, or something for review for a week."),
    )

    def __init__(self, *args: Any, operator: Operator, **kwargs: Any) -> None:
        names = ("language", "time_zone", "mail_cases", "mail_queues")
        kwargs["initial"] = {name: getattr(operator, name) for name in names}
        super().__init__(*args, **kwargs)
        if not (settings.MEMORYHUB_SENDS_MAIL and operator.email):
            del self.fields["mail_cases"], self.fields["mail_queues"]


class OwnPasswordForm(AdminOwnPasswordChangeForm):  # type: ignore[misc]  # Unfold has no types
    """Django's form, which asks for the old password, with our verb."""

    user: Operator

    def save(self, commit: bool = True) -> Operator:
        actor, password = Actor.operator(self.user), self.cleaned_data["new_password1"]
        # Django's view keeps this browser signed in: it reads the new hash from self.user.
        self.user = set_password(operator_id=self.user.pk, password=password, actor=actor, now=timezone.now())
        return self.user


def urls() -> list[URLPattern]:
    return [path("preferences/", admin.site.admin_view(preferences), name="preferences")]


def preferences(request: HttpRequest) -> HttpResponse:
    """The signed-in operator's preferences, which need no permission."""
    operator = request.user
    if not isinstance(operator, Operator):
        raise PermissionDenied
    form = PreferencesForm(request.POST if request.method == "POST" else None, operator=operator)
    if not form.is_valid():
        status = 400 if form.is_bound else 200
        return render_page(request, "memories/preferences.html", title=_("Preferences"), form=form, status=status)
    chosen = {"mail_cases": operator.mail_cases, "mail_queues": operator.mail_queues, **form.cleaned_data}
    set_preferences(operator=operator, **chosen, actor=actor_of(request), now=timezone.now())
    # The next page shows the message: it must be in the new language.
    with translation.override(chosen["language"] or translation.get_language_from_request(request)):
        messages.success(request, _("Your preferences are saved."))
    return HttpResponseRedirect(request.path)
