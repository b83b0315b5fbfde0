"""When tables were written anew, so that what was deleted from them is off the disk."""

from django.db import models


class TableRewrite(models.Model):
    """What was deleted from the table before this moment is in its file no more."""

    table = models.CharField(primary_key=True, max_length=63)
    rewritten_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.table
