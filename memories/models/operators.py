"""Operators: the staff who sign in to the admin (never the people being remembered)."""

from django.contrib.auth.models import AbstractUser
from django.db import models

from memories.models.ids import new_id


class Operator(AbstractUser):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    time_zone = models.CharField(max_length=64, default="UTC")

    class Meta(AbstractUser.Meta):
        ordering = ["username"]
        verbose_name = "operator"
        verbose_name_plural = "operators"

    def __str__(self) -> str:
        return self.username
