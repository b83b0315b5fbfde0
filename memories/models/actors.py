"""Who or what changes something."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ActorKind(models.TextChoices):
    RUN = "run", _("Run")
    OPERATOR = "operator", _("Operator")
    KEY = "key", _("Key")
    COMMAND = "command", _("Command")
    # A pass of forgetting.
    DECAY = "decay", _("Decay")
    # Whoever has a one-time link: nobody knows more of them.
    LINK = "link", _("Link")
