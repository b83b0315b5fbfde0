"""Keys that were made to speak for the user in so many words."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def of_agents(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """A key for an agent writes as the user only where somebody said so."""
    keys = apps.get_model("memories", "APIKey").objects.filter(writes_as="user")
    keys.exclude(agent_id="").update(speaks_for_user=True)


class Migration(migrations.Migration):
    dependencies = [("memories", "0032_turn_follows")]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="speaks_for_user",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Made to write as the user in so many words: what agents write by MCP counts as the user's, too.",
            ),
        ),
        migrations.RunPython(of_agents, migrations.RunPython.noop),
    ]
