"""Sums of what a tenant's applications are served on a day."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0028_review_desks")]
    operations = [
        migrations.CreateModel(
            name="ServedDay",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("day", models.DateField()),
                (
                    "context_times",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveBigIntegerField(),
                        help_text="Contexts by the time that they took, in the order of CONTEXT_MS.",
                        size=None,
                    ),
                ),
                (
                    "recalls",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Memories that a search or a context ranked."
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memories.tenant",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "day"), name="served_day_once"),
                ],
            },
        ),
    ]
