"""Tables whose rows belong to another row get its tenant. Rows of the version before this one are filled in, too.

Nothing is rewritten here: the next migration fills in the rows that are there, in batches, and the one after it
requires the tenant.
"""

import django.db.models.deletion
from django.db import migrations, models

from memories.db.together import Together

# Table → its parent, and the column that names it.
PARENTS = {
    "sessionqueue": ("session", "session_id"),
    "workingmemory": ("session", "session_id"),
    "factevidence": ("fact", "fact_id"),
    "factrelation": ("fact", "fact_id"),
    "factrevision": ("fact", "fact_id"),
    "factrefusal": ("enduser", "end_user_id"),
    "profilerevision": ("enduser", "end_user_id"),
    "change": ("changeset", "change_set_id"),
    "idempotencyrecord": ("apikey", "api_key_id"),
    "privacyexport": ("privacycase", "case_id"),
}
# While hosts are upgraded one after the other, those of the version before write rows without a tenant.
FUNCTION = """
CREATE FUNCTION memories_tenant_of_parent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT tenant_id FROM %I WHERE id = $1', TG_ARGV[0])
        USING (to_jsonb(NEW) ->> TG_ARGV[1])::uuid INTO NEW.tenant_id;
    RETURN NEW;
END $$;
"""
TRIGGER = """
CREATE TRIGGER tenant_of_parent BEFORE INSERT ON memories_{table} FOR EACH ROW WHEN (NEW.tenant_id IS NULL)
    EXECUTE FUNCTION memories_tenant_of_parent('memories_{parent}', '{column}');
"""


def tenant():
    return models.ForeignKey(
        db_constraint=False, db_index=False, editable=False, null=True,
        on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant',
    )


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0026_diary_vectors'),
    ]

    operations = [
        Together([migrations.AddField(model_name=table, name='tenant', field=tenant()) for table in PARENTS]),
        migrations.RunSQL(
            FUNCTION + "".join(
                TRIGGER.format(table=table, parent=parent, column=column) for table, (parent, column) in PARENTS.items()
            ),
            "".join(f"DROP TRIGGER tenant_of_parent ON memories_{table};\n" for table in PARENTS)
            + "DROP FUNCTION memories_tenant_of_parent();",
        ),
    ]
