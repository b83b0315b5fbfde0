"""The reasons that jobs give for a revision, as they are read; what people gave stays as they wrote it."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

REASONS: dict[str, Promise] = {
    "It did not come up again.": _("It did not come up again."),
    "It was over.": _("It was over."),
}


def reason_of(text: str) -> str:
    """In the language in force, where it is one of the jobs'."""
    return str(REASONS.get(text, text))
