"""Skills: procedures from trajectories, with their texts, evidence and trials."""

import django.db.models.deletion
import memories.models.ids
from memories.models.access.roles import grant
from django.db import migrations, models

from memories.db.together import Together

# As 0029 does for every reference between rows of tenants.
PARENTS = ("skill", "skillversion", "skilltext")
REFERENCES = (
    ("skill", "group_id", "memorygroup"),
    ("skillversion", "skill_id", "skill"),
    ("skilltext", "of_version_id", "skillversion"),
    ("skillevidence", "text_id", "skilltext"),
    ("skillevidence", "trajectory_id", "trajectory"),
    ("skilltrial", "of_version_id", "skillversion"),
    ("skilltrial", "end_user_id", "enduser"),
    ("skilltrial", "trajectory_id", "trajectory"),
)


def named(table, column):
    return f"{table}_{column.removesuffix('_id')}_of_tenant"


OF_TENANT = "".join(
    f"ALTER TABLE memories_{table} ADD CONSTRAINT {table}_of_tenant UNIQUE (tenant_id, id);\n" for table in PARENTS
) + "".join(
    f"ALTER TABLE memories_{table} ADD CONSTRAINT {named(table, column)} FOREIGN KEY (tenant_id, {column}) "
    f"REFERENCES memories_{parent} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;\n"
    for table, column, parent in REFERENCES
)
# Columns of personal text: the planner keeps no samples of them.
UNSAMPLED = (
    "ALTER TABLE memories_skilltext ALTER COLUMN text SET STATISTICS 0;\n"
    "ALTER TABLE memories_skilltrial ALTER COLUMN agent_id SET STATISTICS 0, ALTER COLUMN session_id SET STATISTICS 0;\n"
)
NOT_OF_TENANT = "".join(
    f"ALTER TABLE memories_{table} DROP CONSTRAINT {named(table, column)};\n" for table, column, _ in REFERENCES
) + "".join(f"ALTER TABLE memories_{table} DROP CONSTRAINT {table}_of_tenant;\n" for table in PARENTS)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0054_trajectories'),
    ]

    operations = [
        Together([
            migrations.AlterField(
                model_name='modeluse',
                name='purpose',
                field=models.CharField(choices=[('summaries', 'Summaries'), ('upkeep', 'Upkeep'), ('dreams', 'Dreams'), ('answers', 'Answers'), ('skills', 'Skills')], max_length=16),
            ),
            migrations.AlterField(
                model_name='webhookdelivery',
                name='event',
                field=models.CharField(choices=[('fact.created', 'A fact is in use'), ('fact.updated', 'A fact in use says something else'), ('fact.superseded', 'A fact is replaced by another'), ('fact.forgotten', 'A fact is not used any more'), ('episode.created', 'An episode is made'), ('session.extracted', 'New turns of a session are read'), ('review.opened', 'Something waits for review'), ('case.opened', 'A privacy case is opened'), ('case.due', 'A privacy case is due soon, or overdue'), ('person.erased', 'An end user is erased'), ('budget.reached', 'A daily cap of the language model is reached'), ('skill.proposed', 'A skill waits for review'), ('skill.withdrawn', 'A skill is withdrawn'), ('test', 'A test')], editable=False, max_length=20, verbose_name='event'),
            ),
            migrations.CreateModel(
                name='Skill',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(help_text='Of its folder, too.', max_length=64, verbose_name='name')),
                    ('family', models.CharField(blank=True, max_length=100, verbose_name='kind of task')),
                    ('scope', models.CharField(choices=[('tenant', 'All agents'), ('group', 'Members of a group'), ('agent', 'One agent')], max_length=6, verbose_name='served to')),
                    ('agent_id', models.CharField(blank=True, max_length=255, verbose_name='agent')),
                    ('status', models.CharField(choices=[('proposed', 'Proposed'), ('serving', 'In use'), ('withdrawn', 'Withdrawn'), ('rejected', 'Rejected')], default='proposed', max_length=9, verbose_name='status')),
                    ('reason', models.CharField(blank=True, choices=[('below', 'Sessions with it succeed less often than without it'), ('no_evidence', 'What it rested on is gone'), ('operator', 'An operator withdrew it')], max_length=11, verbose_name='reason')),
                    ('share', models.PositiveSmallIntegerField(default=100, help_text='Percent that are given it; the others are the comparison.', verbose_name='share of sessions')),
                    ('served', models.PositiveIntegerField(help_text='Number of the version that is served, or was last.', null=True)),
                    ('version', models.PositiveIntegerField(default=1, help_text='Rises with each decision and change.')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='proposed')),
                    ('changed_at', models.DateTimeField(editable=False, verbose_name='changed')),
                    ('waits_since', models.DateTimeField(help_text='Since when an operator is to decide about it.', null=True)),
                    ('group', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memories.memorygroup', verbose_name='group')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'skill',
                    'verbose_name_plural': 'skills',
                    'ordering': ['-changed_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'indexes': [
                        models.Index(fields=['tenant', '-changed_at', '-id'], name='skill_newest_idx'),
                        models.Index(fields=['tenant', 'family'], name='skill_family_idx'),
                        models.Index(condition=models.Q(('group__isnull', False)), fields=['group'], name='skill_group_idx'),
                        models.Index(condition=models.Q(('waits_since__isnull', False)), fields=['waits_since'], name='skill_waits_idx'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('tenant', 'name'), name='skill_name_once'),
                        models.CheckConstraint(condition=models.Q(('share__lte', 100)), name='skill_share_is_percent'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='SkillPass',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('family', models.CharField(max_length=100, verbose_name='kind of task')),
                    ('state', models.CharField(choices=[('running', 'Running'), ('proposed', 'Proposed'), ('nothing', 'Nothing found'), ('failed', 'Failed')], default='running', max_length=8, verbose_name='status')),
                    ('read', models.PositiveIntegerField(default=0, help_text='How many trajectories with a known outcome there were.')),
                    ('refused', models.JSONField(default=dict, help_text='Reason → how many texts were cut for it.')),
                    ('extractor', models.CharField(blank=True, help_text='llm:<model> or rules.', max_length=120)),
                    ('calls', models.PositiveIntegerField(default=0)),
                    ('prompt_tokens', models.PositiveBigIntegerField(default=0)),
                    ('completion_tokens', models.PositiveBigIntegerField(default=0)),
                    ('started_at', models.DateTimeField()),
                    ('finished_at', models.DateTimeField(null=True)),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'pass for skills',
                    'verbose_name_plural': 'passes for skills',
                    'ordering': ['-started_at', '-id'],
                    'default_permissions': (),
                    'indexes': [
                        models.Index(fields=['tenant', 'family', '-started_at'], name='skill_pass_newest_idx'),
                        models.Index(condition=models.Q(('state', 'running')), fields=['lease_until'], name='skill_pass_running_idx'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(condition=models.Q(('state', 'running')), fields=('tenant', 'family'), name='skill_pass_open_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='SkillText',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('section', models.CharField(choices=[('title', 'Title'), ('when', 'When to use'), ('step', 'Step'), ('check', 'Check'), ('pitfall', 'Pitfall')], max_length=7, verbose_name='section')),
                    ('position', models.PositiveIntegerField(help_text='In the version, from 1.')),
                    ('text', models.TextField(verbose_name='text')),
                    ('is_own', models.BooleanField(default=False, help_text="An operator wrote it, from nobody's trajectory.")),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                    ('of_version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='texts', to='memories.skillversion')),
                ],
                options={
                    'verbose_name': 'text of a skill',
                    'verbose_name_plural': 'texts of skills',
                    'ordering': ['position'],
                    'default_permissions': (),
                    'constraints': [
                        models.UniqueConstraint(fields=('of_version', 'tenant', 'position'), name='skill_text_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='SkillEvidence',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                    ('trajectory', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='taught', to='memories.trajectory')),
                    ('text', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evidence', to='memories.skilltext')),
                ],
                options={
                    'verbose_name': 'evidence of a skill',
                    'verbose_name_plural': 'evidence of skills',
                    'default_permissions': (),
                    'indexes': [
                        models.Index(fields=['trajectory'], name='skill_evidence_trajectory_idx'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(fields=('text', 'tenant', 'trajectory'), name='skill_evidence_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='SkillVersion',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField()),
                    ('state', models.CharField(choices=[('proposed', 'Waits for review'), ('served', 'In use'), ('former', 'No longer in use'), ('rejected', 'Rejected'), ('replaced', 'Replaced')], default='proposed', max_length=8)),
                    ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('dream', 'Dream'), ('link', 'One-time link'), ('person', 'The person')], help_text='Who made it.', max_length=8)),
                    ('actor_id', models.CharField(blank=True, max_length=36)),
                    ('extractor', models.CharField(blank=True, help_text='llm:<model> or rules.', max_length=120)),
                    ('prompt_version', models.CharField(blank=True, max_length=40)),
                    ('base_total', models.PositiveIntegerField(default=0, help_text='Trajectories of this kind of task with a known outcome, before it was served.')),
                    ('base_succeeded', models.PositiveIntegerField(default=0)),
                    ('created_at', models.DateTimeField(editable=False)),
                    ('reviewed_by', models.CharField(blank=True, help_text='Id of the operator.', max_length=36)),
                    ('reviewed_at', models.DateTimeField(null=True)),
                    ('replaced', models.PositiveIntegerField(help_text='The version that was served until it was.', null=True)),
                    ('served_from', models.DateTimeField(null=True)),
                    ('served_until', models.DateTimeField(null=True)),
                    ('skill', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='memories.skill')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'version of a skill',
                    'verbose_name_plural': 'versions of skills',
                    'ordering': ['-number'],
                    'default_permissions': (),
                    'constraints': [
                        models.UniqueConstraint(fields=('skill', 'tenant', 'number'), name='skill_version_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='SkillTrial',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('agent_id', models.CharField(blank=True, max_length=255, verbose_name='agent')),
                    ('session_id', models.CharField(blank=True, help_text="The caller's own; or none.", max_length=255, verbose_name='session')),
                    ('arm', models.CharField(choices=[('served', 'With it'), ('control', 'Without it')], max_length=7, verbose_name='comparison')),
                    ('via', models.CharField(choices=[('files', 'Files'), ('api', 'API'), ('context', 'Context'), ('mcp', 'MCP'), ('stated', 'Stated by the agent')], max_length=7, verbose_name='by way of')),
                    ('outcome', models.CharField(choices=[('succeeded', 'Succeeded'), ('failed', 'Failed'), ('unknown', 'Unknown')], default='unknown', max_length=9, verbose_name='outcome')),
                    ('noted_at', models.DateTimeField(editable=False, verbose_name='first given')),
                    ('read_at', models.DateTimeField(help_text='When its text was first given.', null=True, verbose_name='read')),
                    ('ended_at', models.DateTimeField(help_text='When an outcome came.', null=True, verbose_name='ended')),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='skill_trials', to='memories.enduser', verbose_name='end user')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                    ('trajectory', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='trials', to='memories.trajectory')),
                    ('of_version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='trials', to='memories.skillversion')),
                ],
                options={
                    'verbose_name': 'trial of a skill',
                    'verbose_name_plural': 'trials of skills',
                    'ordering': ['-noted_at', '-id'],
                    'default_permissions': (),
                    'indexes': [
                        models.Index(fields=['end_user', 'session_id'], name='skill_trial_person_idx'),
                        models.Index(fields=['of_version', 'arm', 'outcome'], name='skill_trial_version_idx'),
                        models.Index(condition=models.Q(('trajectory__isnull', False)), fields=['trajectory'], name='skill_trial_trajectory_idx'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(condition=models.Q(models.Q(('session_id', ''), _negated=True), ('ended_at', None), _connector='OR'), fields=('of_version', 'tenant', 'end_user', 'agent_id', 'session_id'), name='skill_trial_once'),
                    ],
                },
            ),
        ]),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
