"""Whose words a turn holds, which parts of it are its author's own, and what passed through the gateway lately."""

import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0033_fact_updated'),
    ]

    operations = [
        Together([
            migrations.CreateModel(
                name='SeenText',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('session_id', models.UUIDField(editable=False, help_text='The conversation, where it is kept.', null=True)),
                    ('turn_id', models.UUIDField(editable=False, help_text="Of a person's text that is kept.", null=True)),
                    ('key_id', models.UUIDField(editable=False, help_text='Of the API key that it came with.')),
                    ('author', models.CharField(choices=[('person', 'Person'), ('application', 'Application'), ('model', 'Model'), ('other', 'Somebody else')], max_length=11)),
                    ('hashes', models.BinaryField(help_text='Of the whole text and of its sentences, 8 bytes each.')),
                    ('head', models.BigIntegerField(editable=False, null=True)),
                    ('tail', models.BigIntegerField(editable=False, null=True)),
                    ('instructions', models.BinaryField(help_text="Of a person's text: hashes of the system prompt's lines, 8 bytes each.", null=True)),
                    ('has_tools', models.BooleanField(default=False, help_text='Whether the request offered tools.')),
                    ('seen_at', models.DateTimeField(verbose_name='time')),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='seen_texts', to='memories.enduser')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'seen text',
                    'verbose_name_plural': 'seen texts',
                    'default_permissions': (),
                    'indexes': [
                        models.Index(fields=['end_user', '-seen_at'], name='seen_text_newest_idx'),
                        models.Index(condition=models.Q(('head__isnull', False)), fields=['key_id', 'head'], name='seen_text_head_idx'),
                        models.Index(condition=models.Q(('tail__isnull', False)), fields=['key_id', 'tail'], name='seen_text_tail_idx'),
                        models.Index(fields=['seen_at'], name='seen_text_oldest_idx'),
                    ],
                },
            ),
            migrations.AddField(
                model_name='turn',
                name='answer_key',
                field=models.BinaryField(help_text='Keyed hash of an answer that the gateway passed on, and of what it answers: a request that holds both goes on with the session.', max_length=16, null=True),
            ),
            migrations.AddField(
                model_name='turn',
                name='author',
                field=models.CharField(blank=True, choices=[('person', 'Person'), ('application', 'Application'), ('model', 'Model'), ('other', 'Somebody else')], help_text='Whose words it holds. Empty: it was stored before the hub asked; by its role.', max_length=11, verbose_name='author'),
            ),
            migrations.AddField(
                model_name='turn',
                name='is_doubtful',
                field=models.BooleanField(default=False, editable=False, help_text="What it says may not be the person's: nothing of it is believed alone."),
            ),
            migrations.AddField(
                model_name='turn',
                name='own',
                field=models.JSONField(blank=True, editable=False, help_text="Start and end of each part of the text that is its author's own; empty: all of it.", null=True),
            ),
            migrations.AlterField(
                model_name='turn',
                name='content',
                field=models.TextField(blank=True, help_text='The text; of list content, its text parts as paragraphs.'),
            ),
            migrations.AddIndex(
                model_name='turn',
                index=models.Index(condition=models.Q(('answer_key__isnull', False)), fields=['end_user', 'answer_key'], name='turn_answer_idx'),
            ),
        ]),
        # As 0029 does for every reference between rows of tenants.
        migrations.RunSQL(
            "ALTER TABLE memories_seentext ADD CONSTRAINT seentext_end_user_of_tenant FOREIGN KEY (tenant_id, end_user_id) "
            "REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;",
            "ALTER TABLE memories_seentext DROP CONSTRAINT seentext_end_user_of_tenant;",
        ),
        # The planner keeps no samples of what tells of people.
        migrations.RunSQL(
            "ALTER TABLE memories_turn ALTER COLUMN answer_key SET STATISTICS 0;"
            "ALTER TABLE memories_seentext ALTER COLUMN hashes SET STATISTICS 0, ALTER COLUMN instructions SET STATISTICS 0;",
            migrations.RunSQL.noop,
        ),
    ]
