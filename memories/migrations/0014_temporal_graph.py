"""The temporal graph: entities and triples of people; facts from before have theirs."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.db.together import Together
from memories.graph import naming
from memories.models.access.roles import grant

# As in 0003_cascades_and_storage.
CASCADES = """
ALTER TABLE memories_graphtriple ADD CONSTRAINT graph_triple_fact_goes
    FOREIGN KEY (fact_id) REFERENCES memories_fact (id) ON DELETE CASCADE;
ALTER TABLE memories_graphtriple ADD CONSTRAINT graph_triple_turn_goes
    FOREIGN KEY (turn_id) REFERENCES memories_turn (id) ON DELETE SET NULL;
"""
NO_CASCADES = """
ALTER TABLE memories_graphtriple DROP CONSTRAINT graph_triple_fact_goes, DROP CONSTRAINT graph_triple_turn_goes;
"""
# As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_graphentity ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN digest SET STATISTICS 0,
    ALTER COLUMN type SET STATISTICS 0;
ALTER TABLE memories_graphtriple ALTER COLUMN agent_id SET STATISTICS 0, ALTER COLUMN predicate SET STATISTICS 0;
"""
# An entity's name is what facts say: it does not stay longer than they do. Of a stated triple that is corrected it stays,
# for the undo, and of a restricted person, for the erasure, which counts what it deletes. Each writer locks the person
# first.
FORGET = """
CREATE FUNCTION memories_forget_unused_entities() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := array(
        SELECT unnest(array[subject_id, object_id]) FROM gone WHERE TG_OP = 'DELETE' OR fact_id IS NOT NULL
    );
BEGIN
    WHILE ids <> '{}' LOOP
        WITH unused AS (
            DELETE FROM memories_graphentity e
            WHERE e.id = ANY (ids)
                AND NOT EXISTS (SELECT FROM memories_graphtriple t WHERE t.subject_id = e.id)
                AND NOT EXISTS (SELECT FROM memories_graphtriple t WHERE t.object_id = e.id)
                AND NOT EXISTS (SELECT FROM memories_graphentity a WHERE a.merged_into_id = e.id)
                AND EXISTS (SELECT FROM memories_enduser p WHERE p.id = e.end_user_id AND p.restricted_at IS NULL)
            RETURNING e.merged_into_id
        )
        SELECT coalesce(array_agg(merged_into_id), '{}') INTO ids FROM unused WHERE merged_into_id IS NOT NULL;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER unused_entities_of_deleted AFTER DELETE ON memories_graphtriple
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_unused_entities();
CREATE TRIGGER unused_entities_of_changed AFTER UPDATE ON memories_graphtriple
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_unused_entities();
"""
KEEP = """
DROP TRIGGER unused_entities_of_changed ON memories_graphtriple;
DROP TRIGGER unused_entities_of_deleted ON memories_graphtriple;
DROP FUNCTION memories_forget_unused_entities();
"""
STEP = 500


def follow_facts(apps, schema_editor):
    """As graph/following.py does, one person after the other."""
    Fact, Entity, Triple = (apps.get_model("memories", name) for name in ("Fact", "GraphEntity", "GraphTriple"))
    telling = Fact.objects.exclude(key="").exclude(value="")
    telling = telling.filter(
        models.Q(status="active") | models.Q(status__in=["superseded", "archived"], valid_to__isnull=False)
    )
    for person in telling.order_by().values_list("end_user", flat=True).distinct().iterator():
        facts = list(telling.filter(end_user=person).order_by("pk"))
        entities = {}
        for name in [naming.SELF, *(fact.value for fact in facts)]:
            entities.setdefault(
                naming.digest_of(name),
                Entity(
                    tenant_id=facts[0].tenant_id,
                    end_user_id=person,
                    name=name,
                    digest=naming.digest_of(name),
                    created_at=facts[0].created_at,
                ),
            )
        Entity.objects.bulk_create(entities.values(), STEP)
        Triple.objects.bulk_create([triple_of(Triple, fact, entities) for fact in facts], STEP)


def triple_of(triple, fact, entities):
    ends = [moment for moment in (fact.valid_to, fact.expires_at) if moment]
    return triple(
        tenant_id=fact.tenant_id,
        end_user_id=fact.end_user_id,
        agent_id=fact.agent_id,
        subject=entities[naming.digest_of(naming.SELF)],
        predicate=naming.predicate_of(fact.key),
        object=entities[naming.digest_of(fact.value)],
        valid_from=fact.valid_from,
        valid_to=max(fact.valid_from, min(ends)) if ends else None,
        dated_at=fact.valid_from,
        confidence=fact.confidence,
        trust=fact.trust,
        extractor=fact.extractor,
        fact=fact,
        created_at=fact.created_at,
        updated_at=fact.updated_at,
    )


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0013_newest_runs'),
    ]

    operations = [
        Together([
            migrations.AlterField(
                model_name='change',
                name='table',
                field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('diary', 'Diary'), ('triple', 'Triple'), ('entity', 'Entity'), ('revision', 'Revision'), ('summary', 'Summary')], editable=False, max_length=8),
            ),
            migrations.CreateModel(
                name='GraphEntity',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=500, verbose_name='name')),
                    ('digest', models.BinaryField(help_text='SHA-256 of the folded name.', max_length=32)),
                    ('type', models.CharField(blank=True, help_text='Such as person or place.', max_length=40, verbose_name='type')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='entities', to='memories.enduser', verbose_name='end user')),
                    ('merged_into', models.ForeignKey(blank=True, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='aliases', to='memories.graphentity', verbose_name='another name of')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'entity',
                    'verbose_name_plural': 'entities',
                    'ordering': ['name', 'id'],
                    'default_permissions': (),
                    'indexes': [models.Index(condition=models.Q(('merged_into__isnull', False)), fields=['merged_into'], name='graph_entity_alias_idx')],
                    'constraints': [models.UniqueConstraint(fields=('end_user', 'digest', 'tenant'), name='graph_entity_once'), models.CheckConstraint(condition=models.Q(('merged_into', models.F('id')), _negated=True), name='graph_entity_of_another')],
                },
            ),
            migrations.CreateModel(
                name='GraphTriple',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('agent_id', models.CharField(blank=True, help_text="Empty: the person's own.", max_length=255, verbose_name='agent')),
                    ('predicate', models.CharField(help_text='Such as works_at.', max_length=100, verbose_name='predicate')),
                    ('valid_from', models.DateTimeField(blank=True, help_text='Empty: not known.', null=True, verbose_name='valid from')),
                    ('valid_to', models.DateTimeField(blank=True, help_text='Empty: it still holds.', null=True, verbose_name='valid until')),
                    ('dated_at', models.DateTimeField(editable=False, help_text='valid_from; without one when it was stored.')),
                    ('confidence', models.FloatField(validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='confidence')),
                    ('status', models.CharField(choices=[('active', 'Active'), ('pending', 'Pending'), ('trashed', 'In the trash')], default='active', editable=False, max_length=7, verbose_name='status')),
                    ('flags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), default=list, editable=False, size=None, verbose_name='flags')),
                    ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], editable=False, max_length=9, verbose_name='trust')),
                    ('extractor', models.CharField(editable=False, help_text='As of a fact.', max_length=120)),
                    ('actor_kind', models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, max_length=8, verbose_name='written by')),
                    ('actor_id', models.CharField(blank=True, editable=False, max_length=36)),
                    ('version', models.PositiveIntegerField(default=1, editable=False)),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                    ('updated_at', models.DateTimeField(editable=False, verbose_name='changed')),
                    ('trashed_at', models.DateTimeField(editable=False, null=True)),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='triples', to='memories.enduser', verbose_name='end user')),
                    ('fact', models.ForeignKey(db_constraint=False, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='triples', to='memories.fact', verbose_name='fact')),
                    ('object', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='incoming', to='memories.graphentity', verbose_name='object')),
                    ('subject', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='outgoing', to='memories.graphentity', verbose_name='subject')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                    ('turn', models.ForeignKey(db_constraint=False, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.turn', verbose_name='turn')),
                ],
                options={
                    'verbose_name': 'triple',
                    'verbose_name_plural': 'triples',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'indexes': [models.Index(fields=['subject', 'dated_at', 'id'], name='graph_triple_subject_idx'), models.Index(fields=['object', 'dated_at', 'id'], name='graph_triple_object_idx'), models.Index(fields=['end_user', 'dated_at', 'id'], name='graph_triple_timeline_idx'), models.Index(fields=['tenant', '-created_at', '-id'], name='graph_triple_newest_idx'), models.Index(condition=models.Q(('turn__isnull', False)), fields=['turn'], name='graph_triple_turn_idx'), models.Index(condition=models.Q(('status', 'trashed')), fields=['tenant', 'trashed_at', 'id'], name='graph_triple_trash_idx')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('fact', None), ('valid_to', None), models.Q(('status', 'trashed'), _negated=True)), fields=('end_user', 'agent_id', 'subject', 'predicate', 'object', 'tenant'), name='graph_triple_open_once'), models.UniqueConstraint(fields=('fact', 'tenant'), name='graph_triple_of_fact'), models.CheckConstraint(condition=models.Q(('valid_from', None), ('valid_to', None), ('valid_to__gte', models.F('valid_from')), _connector='OR'), name='graph_triple_not_inverted'), models.CheckConstraint(condition=models.Q(('confidence__range', (0, 1))), name='graph_triple_confidence')],
                },
            ),
        ]),
        migrations.RunSQL(CASCADES, NO_CASCADES),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(follow_facts, migrations.RunPython.noop),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
