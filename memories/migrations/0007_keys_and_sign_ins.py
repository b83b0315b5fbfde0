"""API keys for one person or one agent, who switched a person's capture or serve off, and counts of failed sign-ins."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import Q

from memories.db.together import Together

SCOPES = [
    ("ingest", "Ingest: turns and sessions"),
    ("read", "Read: context, search, lists"),
    ("write", "Write: facts and profile"),
    ("privacy", "Privacy: requests and exports"),
    ("read_all", "Read all: also what is for certain roles, readers or agents alone"),
]
ACTOR_KINDS = [
    ("run", "Run"),
    ("operator", "Operator"),
    ("key", "Key"),
    ("command", "Command"),
    ("decay", "Decay"),
    ("link", "Link"),
]
WRITERS = [("user", "The user"), ("agent", "An agent")]
SIGN_IN_KINDS = [("name", "Name"), ("address", "Address"), ("browser", "Browser")]
AGENT = "The only agent that it is for, lower-cased; empty: every agent."
PERSON = "The only person whom it is for; empty: everybody of the tenant."
WITH_TENANT = "Revoked by off-boarding its tenant, and by nobody since: taking the tenant back gives it back."

# The planner keeps no samples of what can hold personal data.
UNSAMPLED = "ALTER TABLE memories_apikey ALTER COLUMN user_id SET STATISTICS 0"
# Nobody knows any more who switched a person off. An operator can switch them on again, a key cannot.
SWITCHED_OFF = """
    UPDATE memories_enduser
    SET capture_off_by = CASE WHEN capture THEN '' ELSE 'operator' END,
        serve_off_by = CASE WHEN serve THEN '' ELSE 'operator' END
    WHERE NOT (capture AND serve)
"""
# Until now only the equal moment showed it.
REVOKED_WITH_TENANT = """
    UPDATE memories_apikey k SET revoked_with_tenant = true
    FROM memories_tenant t WHERE t.id = k.tenant_id AND k.revoked_at = t.offboarded_at
"""


def text(max_length, help_text, **options):
    return models.CharField(blank=True, editable=False, max_length=max_length, help_text=help_text, **options)


def scope():
    return models.CharField(choices=SCOPES, max_length=16)


class Migration(migrations.Migration):
    replaces = [("memories", "0039_bound_keys"), ("memories", "0040_failed_sign_ins")]
    dependencies = [("memories", "0006_trust")]
    operations = [
        Together([
            migrations.AddField("apikey", "agent_id", text(255, AGENT)),
            migrations.AddField(
                "apikey", "revoked_with_tenant", models.BooleanField(default=False, editable=False, help_text=WITH_TENANT)
            ),
            migrations.AddField("apikey", "user_id", text(255, PERSON)),
            migrations.AddField(
                "apikey",
                "writes_as",
                models.CharField(
                    choices=WRITERS, default="user", editable=False, max_length=5, help_text="Whose words it writes."
                ),
            ),
            migrations.AlterField("apikey", "scopes", ArrayField(base_field=scope(), size=None)),
            migrations.AlterField("throttlecounter", "scope", scope()),
            migrations.AddIndex(
                "apikey", models.Index(name="api_key_of_person_idx", fields=["tenant", "user_id"], condition=~Q(user_id=""))
            ),
            migrations.AddField("enduser", "capture_off_by", text(8, "Who switched capture off.", choices=ACTOR_KINDS)),
            migrations.AddField("enduser", "serve_off_by", text(8, "Who switched serve off.", choices=ACTOR_KINDS)),
            migrations.CreateModel(
                name="FailedSignIns",
                fields=[
                    ("id", models.BigAutoField(primary_key=True, serialize=False)),
                    ("kind", models.CharField(choices=SIGN_IN_KINDS, max_length=8)),
                    ("digest", models.BinaryField(max_length=32)),
                    ("began_at", models.DateTimeField()),
                    ("failures", models.PositiveIntegerField()),
                ],
                options={
                    "constraints": [models.UniqueConstraint(name="failed_sign_ins_once", fields=("kind", "digest"))],
                },
            ),
        ]),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunSQL(SWITCHED_OFF, migrations.RunSQL.noop),
        migrations.RunSQL(REVOKED_WITH_TENANT, migrations.RunSQL.noop),
    ]
