"""Every reference between rows of tenants is one by (tenant, id), too: no row can point into another tenant.

Django's own reference by id stays beside it. Turns are left out: one more index of the largest table would be written
with each post. What names a turn names its session or its fact, too.
"""

import django.db.models.deletion
from django.db import migrations, models

from memories.db.together import Together

# Table → the tables and columns that name its rows.
REFERENCES = {
    "apikey": (
        ("apikey", "successor_id"),
        ("idempotencyrecord", "api_key_id"),
    ),
    "enduser": (
        ("enduser", "merged_into_id"),
        ("session", "end_user_id"),
        ("turn", "end_user_id"),
        ("extractionrun", "end_user_id"),
        ("fact", "end_user_id"),
        ("episode", "end_user_id"),
        ("profilesection", "end_user_id"),
        ("profilerevision", "end_user_id"),
        ("reviewitem", "end_user_id"),
        ("changeset", "end_user_id"),
        ("changeset", "merged_id"),
        ("diaryentry", "end_user_id"),
        ("memoryfile", "end_user_id"),
        ("dream", "end_user_id"),
        ("graphentity", "end_user_id"),
        ("graphtriple", "end_user_id"),
        ("groupmember", "end_user_id"),
        ("groupfact", "about_id"),
        ("groupevidence", "end_user_id"),
        ("loggedcontext", "end_user_id"),
        ("factrefusal", "end_user_id"),
        ("storeitem", "end_user_id"),
        ("privacycase", "end_user_id"),
        ("webhookdelivery", "end_user_id"),
    ),
    "session": (
        ("sessionqueue", "session_id"),
        ("turn", "session_id"),
        ("extractionrun", "session_id"),
        ("workingmemory", "session_id"),
        ("episode", "session_id"),
        ("factevidence", "session_id"),
    ),
    "extractionrun": (
        ("fact", "extraction_id"),
        ("profilesection", "extraction_id"),
        ("profilerevision", "extraction_id"),
        ("reviewitem", "extraction_id"),
    ),
    "fact": (
        ("fact", "superseded_by_id"),
        ("idempotencyrecord", "fact_id"),
        ("factrevision", "fact_id"),
        ("reviewitem", "fact_id"),
        ("reviewitem", "known_id"),
        ("changeset", "fact_id"),
        ("factevidence", "fact_id"),
        ("factrelation", "fact_id"),
        ("factrelation", "target_id"),
        ("factrefusal", "fact_id"),
    ),
    "profilerevision": (
        ("reviewitem", "proposed_section_id"),
    ),
    "episode": (
        ("reviewitem", "episode_id"),
        ("changeset", "episode_id"),
        ("dreamedepisode", "episode_id"),
    ),
    "reviewitem": (
        ("reviewnote", "item_id"),
        ("changeset", "item_id"),
    ),
    "changeset": (
        ("change", "change_set_id"),
    ),
    "memoryfile": (
        ("fileversion", "file_id"),
    ),
    "dream": (
        ("dreamedit", "dream_id"),
        ("dreamedepisode", "dream_id"),
    ),
    "graphentity": (
        ("graphentity", "merged_into_id"),
        ("graphtriple", "subject_id"),
        ("graphtriple", "object_id"),
    ),
    "memorygroup": (
        ("groupmember", "group_id"),
        ("groupfact", "group_id"),
    ),
    "groupfact": (
        ("groupevidence", "fact_id"),
    ),
    "privacycase": (
        ("privacyexport", "case_id"),
    ),
    "webhookendpoint": (
        ("webhookdelivery", "endpoint_id"),
    ),
}
UNIQUE = {
    "evidence_once": ("factevidence", ["fact", "turn"]),
    "relation_once": ("factrelation", ["fact", "target", "type"]),
    "revision_once": ("factrevision", ["fact", "version"]),
    "refusal_once": ("factrefusal", ["end_user", "kind", "digest"]),
    "idempotency_key_once": ("idempotencyrecord", ["api_key", "endpoint", "key_digest"]),
}
CHILDREN = (
    "sessionqueue", "workingmemory", "factevidence", "factrelation", "factrevision", "factrefusal", "profilerevision",
    "change", "idempotencyrecord", "privacyexport",
)


def tenant():
    return models.ForeignKey(
        db_constraint=False, db_index=False, editable=False,
        on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant',
    )


def named(table, column):
    return f"{table}_{column.removesuffix('_id')}_of_tenant"


MADE = "".join(
    f"ALTER TABLE memories_{parent} ADD CONSTRAINT {parent}_of_tenant UNIQUE (tenant_id, id);\n" for parent in REFERENCES
) + "".join(
    f"ALTER TABLE memories_{table} ADD CONSTRAINT {named(table, column)} FOREIGN KEY (tenant_id, {column}) "
    f"REFERENCES memories_{parent} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;\n"
    for parent, children in REFERENCES.items() for table, column in children
)
DROPPED = "".join(
    f"ALTER TABLE memories_{table} DROP CONSTRAINT {named(table, column)};\n"
    for children in REFERENCES.values() for table, column in children
) + "".join(f"ALTER TABLE memories_{parent} DROP CONSTRAINT {parent}_of_tenant;\n" for parent in REFERENCES)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0028_tenants_filled_in'),
    ]

    operations = [
        Together([
            *(migrations.AlterField(model_name=table, name='tenant', field=tenant()) for table in CHILDREN),
            *(migrations.RemoveConstraint(model_name=table, name=name) for name, (table, _) in UNIQUE.items()),
            *(
                migrations.AddConstraint(
                    model_name=table, constraint=models.UniqueConstraint(fields=[*fields, 'tenant'], name=name)
                )
                for name, (table, fields) in UNIQUE.items()
            ),
        ]),
        migrations.RunSQL(MADE, DROPPED),
    ]
