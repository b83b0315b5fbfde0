"""Every kind of memory that a context can serve is known to the log of contexts.

Contexts with facts of groups name them among what they rest on: an erasure of a person whom such a fact is about finds
them. A section of the profile that is deleted takes the texts along that repeat it, as other memories do.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

FORGET = """
CREATE TRIGGER logged_texts_of_sections AFTER DELETE ON memories_profilesection
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_sections ON memories_profilesection"
# What was logged before; the log is kept for days.
NAME = """
UPDATE memories_loggedcontext SET rests_on = array(
    SELECT unnest(rests_on) UNION
    SELECT (item->>'id')::uuid FROM jsonb_array_elements(items) item WHERE item->>'kind' = 'group_fact'
)
WHERE items @> '[{"kind": "group_fact"}]'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0036_not_as_said'),
    ]

    operations = [
        migrations.AlterField(
            model_name='loggedcontext',
            name='rests_on',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, editable=False, help_text='Memories that go with other people, too; where texts are kept, all memories.', size=None),
        ),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunSQL(NAME, migrations.RunSQL.noop),
    ]
