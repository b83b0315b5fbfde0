"""All rows that workers lease have the same four columns: nightly passes count their attempts, too."""

from django.db import migrations, models

from memories.db.together import Together

LEASED = {
    "lease_token": models.UUIDField(null=True, editable=False),
    "lease_until": models.DateTimeField(
        null=True, editable=False, help_text="Nobody else claims it before; without a token it is a pause."
    ),
    "attempts": models.PositiveIntegerField(default=0, editable=False, help_text="Claims since it last got on."),
    "failure": models.CharField(
        max_length=40, blank=True, editable=False, help_text="Code of the last failure."
    ),
}
QUEUES = ["sessionqueue", "workingmemory"]
PASSES = ["decaypass", "retentionpass"]
STATES = [("running", "Running"), ("done", "Done"), ("held", "Held"), ("failed", "Failed")]
DUE_AT = models.DateTimeField(null=True, help_text="When a worker may begin; empty: nothing to do.")


class Migration(migrations.Migration):
    dependencies = [("memories", "0008_audit_pruning")]
    operations = [
        Together([
            *(migrations.AddField(row, name, LEASED[name]) for row in PASSES for name in ("attempts", "failure")),
            # Of the other tables only the attempts of a case get another type.
            *(migrations.AlterField(row, name, LEASED[name]) for row in [*QUEUES, "privacycase"] for name in LEASED),
            *(migrations.AlterField(row, "lease_until", LEASED["lease_until"]) for row in PASSES),
            *(migrations.AlterField(row, "due_at", DUE_AT) for row in QUEUES),
            migrations.AlterField(
                "decaypass", "state", models.CharField("state", max_length=7, choices=STATES, default="running")
            ),
        ]),
    ]
