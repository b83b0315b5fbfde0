"""What may be said of a person besides the ids, as fields of a form."""

from django import forms
from django.utils.translation import gettext_lazy

from memories.admin.fields import LineField, check_language, check_zone


class RecordFields(forms.Form):
    display_name = LineField(label=gettext_lazy("Display name"), required=False, max_length=255)
    time_zone = LineField(
        label=gettext_lazy("Time zone"),
        required=False,
        max_length=64,
        validators=[check_zone],
        help_text=gettext_lazy("Like Asia/Shanghai; empty: the tenant's."),
    )
    language = LineField(
        label=gettext_lazy("Language"),
        required=False,
        max_length=35,
        validators=[check_language],
        help_text=gettext_lazy("Like zh-CN."),
    )
