"""Who or what changes something."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ActorKind(models.TextChoices):
    RUN = "run", _("Extraction")
    OPERATOR = "operator", _("Operator")
    KEY = "key", _("Application")
    COMMAND = "command", _("Command")
    # A pass of forgetting.
    DECAY = "decay", _("Decay pass")
    # What a model made of new episodes.
    DREAM = "dream", _("Dream")
    # Whoever has a one-time link: nobody knows more of them.
    LINK = "link", _("One-time link")
    # The end user, on their own page.
    PERSON = "person", _("The person")
