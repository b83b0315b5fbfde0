"""The page for the person: links to it, what a tenant allows there, and changes by the person.

Stop all hosts: an older one does not know the person among those who act.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
import memories.models.ids
import memories.models.people.tenants
from django.db import migrations, models

from memories.db.together import Together

# As 0029 does for every reference between rows of tenants.
OF_TENANT = """
ALTER TABLE memories_personlink ADD CONSTRAINT personlink_end_user_of_tenant
    FOREIGN KEY (tenant_id, end_user_id) REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_personlink ADD CONSTRAINT personlink_key_of_tenant
    FOREIGN KEY (tenant_id, key_id) REFERENCES memories_apikey (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
NOT_OF_TENANT = """
ALTER TABLE memories_personlink DROP CONSTRAINT personlink_end_user_of_tenant;
ALTER TABLE memories_personlink DROP CONSTRAINT personlink_key_of_tenant;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0045_changed_facts'),
    ]

    operations = [
        Together([
            migrations.AlterField(
                model_name='reviewitem',
                name='reason',
                field=models.CharField(choices=[('assistant_trust', 'Only the assistant stated it'), ('tool_trust', 'Only a tool stated it'), ('suggested', 'Found by simple rules'), ('not_as_said', 'The user may not have said it like this'), ('less_sure', 'Less certain than the existing fact'), ('outranked', 'Contradicts a more trusted source'), ('operators_word', 'Contradicts what was confirmed'), ('refused_before', 'Repeated after it was rejected'), ('near_refused', 'Similar to a rejected fact'), ('removal', 'May be no longer true'), ('proposed', 'An agent proposes other words'), ('forget_asked', 'An agent asks to forget it'), ('other_person', 'Differs between the merged end users'), ('imported', 'Imported; contradicts an existing fact'), ('not_judged', 'Similar to an existing fact'), ('instructions', 'Looks like an instruction to a model'), ('claims_rights', 'Claims money or rights'), ('possible_secret', 'May contain a secret'), ('poor_quality', 'Says too little about the conversation'), ('habit', 'A habit, found in several episodes'), ('change_of_mind', 'A change of mind, found in several episodes'), ('recurring_problem', 'A problem that comes again, found in several episodes')], max_length=20),
            ),
            migrations.AddField(
                model_name='tenant',
                name='person_color',
                field=models.CharField(blank=True, help_text='Of its buttons and links, like #0f766e. Empty: the hub’s own.', max_length=7, verbose_name='colour of that page'),
            ),
            migrations.AddField(
                model_name='tenant',
                name='person_may',
                field=models.JSONField(blank=True, default=memories.models.people.tenants.person_may, help_text='Beside seeing what is remembered. A link can allow less, never more.', verbose_name='what the person may do there'),
            ),
            migrations.AddField(
                model_name='tenant',
                name='person_page',
                field=models.BooleanField(default=False, help_text='On: the application can make links with which an end user opens a page of their own memory.', verbose_name='page for the person'),
            ),
            migrations.AlterField(
                model_name='agent',
                name='extraction_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, help_text='Who switched extraction off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='agent',
                name='guidance_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, help_text='Who wrote the guidance last.', max_length=8),
            ),
            migrations.AlterField(
                model_name='agent',
                name='recall_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, help_text='Who switched recall off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='auditevent',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8, verbose_name='by'),
            ),
            migrations.AlterField(
                model_name='changeset',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, max_length=8),
            ),
            migrations.AlterField(
                model_name='diaryentry',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='dream',
                name='actor_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], help_text='Who asked for it.', max_length=8),
            ),
            migrations.AlterField(
                model_name='enduser',
                name='capture_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, help_text='Who switched capture off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='enduser',
                name='serve_off_by',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, help_text='Who switched serve off.', max_length=8),
            ),
            migrations.AlterField(
                model_name='fact',
                name='source',
                field=models.CharField(choices=[('explicit_user_input', 'Explicit'), ('implicit_inference', 'Implicit'), ('system_generated', 'System'), ('external_data', 'External'), ('corrected_memory', 'Corrected'), ('person_correction', 'The person')], max_length=20, verbose_name='source'),
            ),
            migrations.AlterField(
                model_name='factrefusal',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], default='operator', max_length=8),
            ),
            migrations.AlterField(
                model_name='factrevision',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='fileversion',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='graphtriple',
                name='actor_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='groupevidence',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='memoryfile',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8, verbose_name='written by'),
            ),
            migrations.AlterField(
                model_name='privacycase',
                name='approved_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='privacycase',
                name='opened_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='privacycase',
                name='verified_kind',
                field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='profilerevision',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='profilesection',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], max_length=8),
            ),
            migrations.AlterField(
                model_name='reviewnote',
                name='actor_kind',
                field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], editable=False, max_length=8),
            ),
            migrations.CreateModel(
                name='PersonLink',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('generation', models.PositiveIntegerField(editable=False, help_text="The person's when it was made.")),
                    ('language', models.CharField(blank=True, help_text='Empty: what the browser asks for.', max_length=10)),
                    ('allow', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), help_text='What the page lets the person do, at most.', size=None)),
                    ('embed_origins', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), default=list, help_text='Sites that may show the page in a frame.', size=None)),
                    ('created_at', models.DateTimeField()),
                    ('expires_at', models.DateTimeField(help_text='Until when it can be opened.')),
                    ('opened_at', models.DateTimeField(null=True)),
                    ('ends_at', models.DateTimeField(help_text='When the session ends; empty: it was not opened.', null=True)),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='page_links', to='memories.enduser', verbose_name='end user')),
                    ('key', models.ForeignKey(help_text='Who made it: when the key ends, so does it.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.apikey')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'link to a person’s page',
                    'verbose_name_plural': 'links to people’s pages',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': (),
                    'indexes': [models.Index(fields=['end_user', '-created_at'], name='person_link_of_person_idx'), models.Index(fields=['created_at'], name='person_link_oldest_idx')],
                },
            ),
        ]),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
    ]
