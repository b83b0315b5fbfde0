"""Trajectories: what agents did for a task, step by step, and how it came out; kept for some days, as turns are."""

import django.db.models.deletion
from django.db import migrations, models

import memories.models.ids
from memories.db.together import Together
from memories.models.access.roles import grant

# The planner keeps no samples of what is personal.
UNSAMPLED = "".join(
    f"ALTER TABLE memories_{table} "
    + ", ".join(f"ALTER COLUMN {name} SET STATISTICS 0" for name in columns.split()) + ";\n"
    for table, columns in (
        ("trajectory", "agent_id session_id external_id task family outcome_reason skills_named"),
        ("trajectorystep", "tool call_id arguments content"),
    )
)
# As 0029 does for every reference between rows of tenants.
OF_TENANT = """
ALTER TABLE memories_trajectory ADD CONSTRAINT trajectory_of_tenant UNIQUE (tenant_id, id);
ALTER TABLE memories_trajectory ADD CONSTRAINT trajectory_end_user_of_tenant
    FOREIGN KEY (tenant_id, end_user_id) REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_trajectorystep ADD CONSTRAINT trajectorystep_trajectory_of_tenant
    FOREIGN KEY (tenant_id, trajectory_id) REFERENCES memories_trajectory (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
NOT_OF_TENANT = """
ALTER TABLE memories_trajectorystep DROP CONSTRAINT trajectorystep_trajectory_of_tenant;
ALTER TABLE memories_trajectory DROP CONSTRAINT trajectory_end_user_of_tenant;
ALTER TABLE memories_trajectory DROP CONSTRAINT trajectory_of_tenant;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0053_import_findings'),
    ]

    operations = [
        Together([
            migrations.AlterField(
                model_name='retentionpass',
                name='counts',
                field=models.JSONField(blank=True, default=dict, help_text='turns, sessions, episodes, runs, audit, exports, contexts, store, diary, trajectories.'),
            ),
            migrations.AlterField(
                model_name='retentionpass',
                name='stage',
                field=models.CharField(choices=[('turns', 'Turns'), ('episodes', 'Episodes'), ('runs', 'Runs'), ('audit', 'Audit events'), ('exports', 'Exports'), ('contexts', 'Log of contexts'), ('store', 'Items of the store'), ('diary', 'Diary entries'), ('trajectories', 'Trajectories')], default='turns', max_length=12),
            ),
            migrations.AlterField(
                model_name='change',
                name='table',
                field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('diary', 'Diary'), ('triple', 'Triple'), ('entity', 'Entity'), ('member', 'Member'), ('said', 'Said'), ('shared', 'Shared'), ('revision', 'Revision'), ('summary', 'Summary'), ('turn', 'Turn'), ('trajectory', 'Trajectory')], editable=False, max_length=10),
            ),
            migrations.CreateModel(
                name='Trajectory',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('agent_id', models.CharField(blank=True, editable=False, help_text='Lower-cased; empty: no agent was named.', max_length=255, verbose_name='agent')),
                    ('session_id', models.CharField(blank=True, editable=False, help_text="The caller's own id, as of a session.", max_length=255, verbose_name='session')),
                    ('external_id', models.CharField(blank=True, editable=False, help_text="The caller's own id; stored once for each person.", max_length=255)),
                    ('road', models.CharField(choices=[('api', 'API'), ('gateway', 'Gateway')], default='api', editable=False, max_length=7, verbose_name='road')),
                    ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], editable=False, help_text='Of whoever posted it.', max_length=9, verbose_name='trust')),
                    ('task', models.TextField(editable=False, help_text='What was to be done.', verbose_name='task')),
                    ('family', models.CharField(blank=True, editable=False, help_text="The application's label.", max_length=100, verbose_name='kind of task')),
                    ('outcome', models.CharField(choices=[('succeeded', 'Succeeded'), ('failed', 'Failed'), ('unknown', 'Unknown')], default='unknown', editable=False, max_length=9, verbose_name='outcome')),
                    ('outcome_source', models.CharField(blank=True, choices=[('application', 'The application'), ('tests', 'The last test run'), ('person', 'The person’s thanks or correction')], editable=False, max_length=11, verbose_name='outcome according to')),
                    ('outcome_reason', models.TextField(blank=True, editable=False, verbose_name='reason')),
                    ('skills_named', models.JSONField(default=list, editable=False, help_text='Names of skills that the agent says it followed.', verbose_name='skills followed')),
                    ('step_count', models.PositiveIntegerField(default=0, editable=False, verbose_name='steps')),
                    ('started_at', models.DateTimeField(editable=False, verbose_name='started')),
                    ('ended_at', models.DateTimeField(editable=False, null=True, verbose_name='ended')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='stored')),
                    ('updated_at', models.DateTimeField(editable=False, help_text='When a step or an outcome came last; retention counts from here.', verbose_name='changed')),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='trajectories', to='memories.enduser', verbose_name='end user')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'trajectory',
                    'verbose_name_plural': 'trajectories',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view',),
                    'indexes': [
                        models.Index(fields=['end_user', '-created_at', '-id'], name='trajectory_newest_idx'),
                        models.Index(condition=models.Q(('session_id', ''), _negated=True), fields=['end_user', 'session_id'], name='trajectory_session_idx'),
                        models.Index(fields=['tenant', '-created_at', '-id'], name='trajectory_of_tenant_idx'),
                        models.Index(fields=['tenant', 'updated_at', 'id'], name='trajectory_old_idx'),
                    ],
                    'constraints': [
                        models.UniqueConstraint(condition=models.Q(('external_id', ''), _negated=True), fields=('end_user', 'external_id', 'tenant'), name='trajectory_once'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='TrajectoryStep',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('position', models.PositiveIntegerField(help_text='From 1, without gaps.', verbose_name='number')),
                    ('kind', models.CharField(choices=[('message', 'Message'), ('tool_call', 'Tool call'), ('tool_result', 'Tool result'), ('note', 'Note')], max_length=11, verbose_name='kind')),
                    ('tool', models.CharField(blank=True, max_length=200, verbose_name='tool')),
                    ('call_id', models.CharField(blank=True, help_text='Of a call and of its result, which a trajectory has once each.', max_length=255)),
                    ('arguments', models.JSONField(help_text='As the model gave them; a string where they were no JSON or were cut.', null=True, verbose_name='arguments')),
                    ('content', models.TextField(blank=True, verbose_name='text')),
                    ('exit_code', models.IntegerField(null=True, verbose_name='exit code')),
                    ('is_error', models.BooleanField(default=False, verbose_name='failed')),
                    ('cut', models.PositiveIntegerField(default=0, help_text='Characters of the text and the arguments that were cut.')),
                    ('at', models.DateTimeField(help_text='As the caller says.', null=True, verbose_name='time')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                    ('trajectory', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='memories.trajectory')),
                ],
                options={
                    'verbose_name': 'step of a trajectory',
                    'verbose_name_plural': 'steps of trajectories',
                    'ordering': ['position'],
                    'default_permissions': (),
                    'constraints': [
                        models.UniqueConstraint(fields=('trajectory', 'position', 'tenant'), name='trajectory_step_once'),
                        models.UniqueConstraint(condition=models.Q(('call_id', ''), _negated=True), fields=('trajectory', 'call_id', 'kind', 'tenant'), name='trajectory_call_once'),
                    ],
                },
            ),
        ]),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
