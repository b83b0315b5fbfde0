from django.db import migrations, models

FORWARD = """
CREATE FUNCTION memories_audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP;
END $$;
-- What retention prunes may go, once the link that says so is in the chain: it covers sealed events alone. Nothing is
-- pruned of what has no tenant.
CREATE OR REPLACE FUNCTION memories_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('memoryhub.audit_pruning', true) = 'on' AND EXISTS (
        SELECT 1 FROM memories_auditseal s
        WHERE s.tenant_uuid = OLD.tenant_uuid AND s.kind = 'pruning' AND s.last_id >= OLD.id
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP;
END $$;
CREATE TRIGGER audit_untruncated BEFORE TRUNCATE ON memories_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION memories_audit_refuses();
CREATE TRIGGER seals_append_only BEFORE UPDATE OR DELETE ON memories_auditseal
    FOR EACH ROW EXECUTE FUNCTION memories_audit_refuses();
CREATE TRIGGER seals_untruncated BEFORE TRUNCATE ON memories_auditseal
    FOR EACH STATEMENT EXECUTE FUNCTION memories_audit_refuses();
"""
BACKWARD = """
DROP TRIGGER seals_untruncated ON memories_auditseal;
DROP TRIGGER seals_append_only ON memories_auditseal;
DROP TRIGGER audit_untruncated ON memories_auditevent;
CREATE OR REPLACE FUNCTION memories_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP;
END $$;
DROP FUNCTION memories_audit_refuses();
"""


class Migration(migrations.Migration):
    """The chain of seals over the audit trail; neither of them can be emptied, and what is pruned says so."""

    dependencies = [
        ('memories', '0031_erasure'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditSeal',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('tenant_uuid', models.UUIDField(null=True)),
                ('number', models.PositiveIntegerField(help_text='From 1, without gaps, in its chain.')),
                ('kind', models.CharField(choices=[('seal', 'Seal'), ('pruning', 'Pruning')], max_length=7)),
                ('first_id', models.BigIntegerField()),
                ('last_id', models.BigIntegerField()),
                ('count', models.PositiveIntegerField(help_text='Events sealed, or deleted.')),
                ('newest_at', models.DateTimeField(help_text='When the newest of these events was.')),
                ('leaves', models.BinaryField(help_text='Of each event its id and a keyed digest; empty for a pruning.')),
                ('previous', models.BinaryField(help_text='Digest of the link before; empty for the first.', max_length=32)),
                ('digest', models.BinaryField(max_length=32)),
                ('sealed_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'audit seal',
                'verbose_name_plural': 'audit seals',
                'ordering': ['id'],
                'default_permissions': (),
                'indexes': [models.Index(fields=['-last_id'], name='audit_sealed_idx'), models.Index(fields=['tenant_uuid', 'kind', '-last_id'], name='audit_pruned_idx')],
                'constraints': [models.UniqueConstraint(fields=('tenant_uuid', 'number'), name='audit_seal_once'), models.UniqueConstraint(condition=models.Q(('tenant_uuid__isnull', True)), fields=('number',), name='audit_seal_once_of_none')],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
