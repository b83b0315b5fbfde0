"""Who or what changes something."""

from django.db import models


class ActorKind(models.TextChoices):
    RUN = "run"
    OPERATOR = "operator"
    KEY = "key"
    COMMAND = "command"
    # A pass of forgetting.
    DECAY = "decay"
