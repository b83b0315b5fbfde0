"""Roles see memory files, and those who edit memories edit them."""

from django.db import migrations

from memories.models.access.roles import grant


class Migration(migrations.Migration):
    dependencies = [("memories", "0037_proposals")]
    operations = [migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop)]
