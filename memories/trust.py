"""Who vouches for a statement, which source it has, and whether it is believed. Pure."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Trust(models.TextChoices):
    OPERATOR = "operator", _("Operator")
    USER = "user", _("User")
    ASSISTANT = "assistant", _("Assistant")
    TOOL = "tool", _("Tool")


class Source(models.TextChoices):
    EXPLICIT = "explicit_user_input", _("Explicit")
    IMPLICIT = "implicit_inference", _("Implicit")
    SYSTEM = "system_generated", _("System")
    EXTERNAL = "external_data", _("External")
    CORRECTED = "corrected_memory", _("Corrected")
    PERSON = "person_correction", _("The person")


# What nobody else can crowd out, or make look weak.
TRUSTED = (Trust.OPERATOR, Trust.USER)
# What an operator, or the person on their own page, stated instead of what was remembered: it binds.
CORRECTIONS = (Source.CORRECTED, Source.PERSON)
# The source of a statement of which nobody says another one.
SOURCE_OF = {Trust.USER: Source.EXPLICIT, Trust.ASSISTANT: Source.SYSTEM, Trust.TOOL: Source.EXTERNAL}
_RANKS = {Trust.TOOL: 0, Trust.ASSISTANT: 1, Trust.USER: 2, Trust.OPERATOR: 3}


def rank(trust: str) -> int:
    """Higher outranks lower: operator > user > assistant > tool."""
    return _RANKS[Trust(trust)]


def is_believed(trust: str, *, trusts_assistant: bool, is_import: bool = False) -> bool:
    """Whether a statement of this trust is served before an operator has reviewed it.

    `trusts_assistant` is the tenant's choice. An import is a record of another system: it does not profit from it.
    """
    if trust == Trust.ASSISTANT:
        return trusts_assistant and not is_import
    return trust in TRUSTED
