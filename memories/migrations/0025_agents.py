"""The agents of a tenant, with switches and guidance: those that have a session already, and then each that gets one."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids
from memories.models.access.roles import grant

# As in 0004_unsampled_columns.
UNSAMPLED = "ALTER TABLE memories_agent ALTER COLUMN agent_id SET STATISTICS 0"


def list_agents(apps: Any, schema_editor: Any) -> None:
    agents = apps.get_model("memories", "Agent").objects.using(schema_editor.connection.alias)
    sessions = apps.get_model("memories", "Session").objects.using(schema_editor.connection.alias)
    held = sessions.exclude(agent_id="").order_by().values("tenant", "agent_id")
    agents.bulk_create(
        [
            agents.model(
                id=memories.models.ids.new_id(),
                tenant_id=row["tenant"],
                agent_id=row["agent_id"],
                created_at=row["first"],
            )
            for row in held.annotate(first=models.Min("created_at")).order_by("first")
        ],
        batch_size=1_000,
    )


class Migration(migrations.Migration):
    dependencies = [("memories", "0024_fact_of_agent")]
    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "agent_id",
                    models.CharField(
                        editable=False,
                        help_text="As the API calls it, lower-cased.",
                        max_length=255,
                        verbose_name="agent",
                    ),
                ),
                (
                    "extraction",
                    models.BooleanField(
                        default=True,
                        help_text="Off: turns of its sessions are stored and wait. They are extracted once it is on again.",
                        verbose_name="extraction",
                    ),
                ),
                (
                    "recall",
                    models.BooleanField(
                        default=True, help_text="Off: its contexts and searches are empty.", verbose_name="recall"
                    ),
                ),
                (
                    "guidance",
                    models.TextField(
                        blank=True,
                        help_text="Instructions to the model for this agent's sessions. They follow those of the tenant.",
                        max_length=4000,
                        verbose_name="extraction guidance",
                    ),
                ),
                ("created_at", models.DateTimeField(editable=False)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agents",
                        to="memories.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={"verbose_name": "agent", "verbose_name_plural": "agents", "ordering": ["tenant", "agent_id"]},
        ),
        migrations.AddConstraint(
            "agent", models.UniqueConstraint(fields=("tenant", "agent_id"), name="agent_once")
        ),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(list_agents, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
