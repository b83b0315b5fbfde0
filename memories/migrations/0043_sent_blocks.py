"""The blocks of memory that the gateway sent, so that later requests of a conversation carry the same.

A memory that is deleted for good takes the blocks along that tell it, as it empties the texts of logged contexts.
"""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids

# Triggers of each kind of memory call it (0011, 0012, 0016, 0019, 0037).
_FORGET = """
CREATE OR REPLACE FUNCTION memories_forget_logged_texts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := array(SELECT id FROM gone);
BEGIN
    IF ids <> '{{}}' THEN
        UPDATE memories_loggedcontext SET query = '', memory = ''
        WHERE rests_on && ids AND rests_on <> '{{}}' AND (query <> '' OR memory <> '');
        {more}
    END IF;
    RETURN NULL;
END $$;
"""
FORGET = _FORGET.format(more="DELETE FROM memories_sentblock WHERE rests_on && ids AND rests_on <> '{}';")
FORGET_LOGGED = _FORGET.format(more="")
# As in 0004_unsampled_columns.
UNSAMPLED = "ALTER TABLE memories_sentblock " + ", ".join(
    f"ALTER COLUMN {column} SET STATISTICS 0"
    for column in ("agent_id", "session", "place", "text", "items", "rests_on", "seal", "ended")
)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0042_dream_files'),
    ]

    operations = [
        migrations.CreateModel(
            name='SentBlock',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.CharField(blank=True, editable=False, max_length=255, verbose_name='agent')),
                ('session', models.BinaryField(help_text='Keyed hash of agent and session.', max_length=16)),
                ('place', models.BinaryField(help_text='Keyed hash of the messages up to the one before which it stands; of a stable block its session.', max_length=16)),
                ('kind', models.CharField(choices=[('stable', 'With the system prompt'), ('volatile', 'Before a message')], editable=False, max_length=8, verbose_name='kind')),
                ('text', models.TextField(blank=True, editable=False, verbose_name='text')),
                ('items', models.JSONField(default=list, editable=False, help_text='kind and id of each memory in it.')),
                ('rests_on', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, editable=False, help_text='The ids of these memories.', size=None)),
                ('seal', models.BigIntegerField(default=0, editable=False, help_text='Hash of what these memories said.')),
                ('ended', models.BigIntegerField(default=0, editable=False, help_text='Hash of what did not hold any more then.')),
                ('token_count', models.PositiveIntegerField(default=0, editable=False, verbose_name='tokens')),
                ('sent_at', models.DateTimeField(editable=False, verbose_name='time')),
                ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sent_blocks', to='memories.enduser', verbose_name='end user')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'sent block',
                'verbose_name_plural': 'sent blocks',
                'ordering': ['-sent_at', '-id'],
                'default_permissions': (),
                'indexes': [models.Index(fields=['end_user', 'session'], name='sent_block_session_idx'), models.Index(fields=['sent_at'], name='sent_block_oldest_idx'), django.contrib.postgres.indexes.GinIndex(condition=models.Q(('rests_on', []), _negated=True), fields=['rests_on'], name='sent_block_rests_on_idx')],
                'constraints': [models.UniqueConstraint(fields=('end_user', 'place', 'session', 'tenant'), name='sent_block_once')],
            },
        ),
        # As 0029 does for every reference between rows of tenants.
        migrations.RunSQL(
            "ALTER TABLE memories_sentblock ADD CONSTRAINT sentblock_end_user_of_tenant FOREIGN KEY (tenant_id, end_user_id) "
            "REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;",
            "ALTER TABLE memories_sentblock DROP CONSTRAINT sentblock_end_user_of_tenant;",
        ),
        migrations.RunSQL(FORGET, FORGET_LOGGED),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
    ]
