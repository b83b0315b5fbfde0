"""What a later version's migration does on distributed tables: fields, an index, references, a table of tenants' rows.

`python -m tests.distributed.later` as the owner, in the environment of a hub. It prints the references that the nodes
have afterwards, and a row. Nothing of it is a migration of the hub: its database is thrown away.
"""

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django.setup()

from django.apps import apps  # noqa: E402
from django.db import connection, migrations, models, transaction  # noqa: E402
from django.db.migrations.migration import Migration  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402

from memories.management.distributing import distribute  # noqa: E402
from memories.models import EndUser, Tenant  # noqa: E402
from memoryhub.database import distributed, placement  # noqa: E402

UNIQUE = models.UniqueConstraint(fields=["tenant", "title"], name="later_title")


def later() -> Migration:
    """As Django writes it."""
    found = Migration("later", "memories")
    key = models.DO_NOTHING
    found.operations = [  # type: ignore[misc]  # as Django's own loader
        migrations.AddField("Fact", "later_word", models.CharField(max_length=20, default="none")),
        migrations.AddIndex("Fact", models.Index(fields=["tenant", "later_word"], name="later_word_idx")),
        migrations.CreateModel(
            "Later",
            fields=[
                ("id", models.UUIDField(primary_key=True)),
                ("title", models.CharField(max_length=20)),
                ("tenant", models.ForeignKey("memories.tenant", on_delete=key)),
                ("end_user", models.ForeignKey("memories.enduser", on_delete=key)),
            ],
            options={"constraints": [UNIQUE]},
        ),
        migrations.AddField("Session", "later_owner", models.ForeignKey("memories.operator", key, null=True)),
        migrations.AddField("Session", "later_fact", models.ForeignKey("memories.fact", key, null=True)),
    ]
    return found


def main() -> None:
    with connection.schema_editor() as editor:
        state = later().apply(ProjectState.from_apps(apps), editor)
    # The models of the later version.
    for name in ("later_owner", "later_fact"):
        state.apps.get_model("memories", "session")._meta.get_field(name).clone().contribute_to_class(
            apps.get_model("memories", "session"), name
        )

    class Later(models.Model):  # noqa: DJ008  (nobody sees its rows)
        id = models.UUIDField(primary_key=True)
        title = models.CharField(max_length=20)
        tenant = models.ForeignKey(Tenant, on_delete=models.DO_NOTHING)
        end_user = models.ForeignKey(EndUser, on_delete=models.DO_NOTHING)

        class Meta:
            app_label = "memories"

    # The process began with the models of now.
    for known in (placement.placements, placement.distributed, distributed._fields):
        known.cache_clear()
    distribute()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE contype = 'f' AND (conrelid = 'memories_later'::regclass OR conname LIKE '%%later%%') ORDER BY 1, 2"
        )
        for row in cursor.fetchall():
            sys.stdout.write(f"{' '.join(row)}\n")
    person = EndUser.objects.first()
    assert person
    with transaction.atomic():
        Later._default_manager.create(id=person.pk, title="first", tenant=person.tenant, end_user=person)
    kept = Later._default_manager.select_for_update().select_related("end_user").filter(end_user=person)
    with transaction.atomic():
        sys.stdout.write(f"{len(kept)} row of the person\n")


if __name__ == "__main__":
    main()
