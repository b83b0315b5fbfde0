"""An index of agents' facts with a key: contexts of an agent look which of these are told instead of the person's."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("memories", "0023_profile_of_agents")]
    operations = [
        migrations.AddIndex(
            "fact",
            models.Index(
                fields=["end_user", "agent_id", "category", "key"],
                condition=Q(("status", "active"), ~Q(("agent_id", "")), ~Q(("key", ""))),
                name="fact_of_agent_idx",
            ),
        ),
    ]
