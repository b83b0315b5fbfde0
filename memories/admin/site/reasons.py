"""The field for why somebody changes something: optional, with common reasons to choose from."""

from typing import Any

from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget

from memories.admin.site.fields import LineField

LONGEST_REASON = 2000
KEPT_WITH_REVISION = _("Optional; kept with the revision.")

APPROVE = (_("The end user confirmed it"), _("The conversation says it"), _("Known from another source"))
REJECT = (
    _("Not true"),
    _("Only guessed"),
    _("Said in jest, or of somebody else"),
    _("Too private to keep"),
    _("Not worth keeping"),
)
CORRECT = (_("The end user said so"), _("Misunderstood"), _("Out of date"), _("Typing error"))
FORGET = (
    _("Not true"),
    _("Out of date"),
    _("The end user asked for it"),
    _("Too private to keep"),
    _("Not worth keeping"),
)
RESTORE = (_("Forgotten by mistake"), _("Still true"))
KEEP = (_("Must not be lost"), _("Agreed with the end user"))
RELEASE = (_("No longer needed"), _("Done by mistake"))
EXPIRE = (_("True for a limited time"), _("Out of date"))
ADD = (_("The end user said so"), _("Known from another source"))
PUBLISH = (_("Holds for everybody"),)
PROMOTE = (_("All agents need it"),)
WITHDRAW = (_("Concerns one end user only"), _("Done by mistake"))
RECONSIDER = (_("Rejected by mistake"),)
WHOSE = (_("The application wrote it"), _("The person typed it"), _("Retold by a model"))
MERGE = (_("They say the same"),)
JOIN = (_("The same under two names"), _("Typing error"))
SPLIT = (_("They say different things"),)
MERGE_PEOPLE = (_("The same person with two ids"),)
CLEAR = (_("The end user asked for it"), _("Test data"), _("Somebody else's conversations"))
ROLL_BACK = (_("The application sent wrong data"), _("The agent behaved wrongly"), _("The key was misused"))


class ReasonInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """A line of text with a list of proposals. The browser does not remember what was typed."""

    def __init__(self, presets: tuple[str | Promise, ...]) -> None:
        super().__init__(attrs={"autocomplete": "off"})
        self.presets = presets

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:
        # A page has several forms: each field needs a list of its own.
        listed = f"{(attrs or {}).get('id') or name}_presets"
        line = super().render(name, value, {**(attrs or {}), "list": listed}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((preset,) for preset in self.presets))
        return format_html('{}<datalist id="{}">{}</datalist>', line, listed, options)


class ReasonField(LineField):
    """Why: one of the presets, or other words. Nobody has to say, unless `required`."""

    def __init__(
        self,
        *presets: str | Promise,
        longest: int = LONGEST_REASON,
        required: bool = False,
        help_text: str | Promise = KEPT_WITH_REVISION,
    ) -> None:
        super().__init__(
            label=_("Reason"),
            required=required,
            max_length=longest,
            help_text=help_text,
            widget=ReasonInput(presets),
        )
