"""A link says that it was used: the hash of its token stays with the emptied export. Who has a link acts as such."""

from django.db import migrations, models

KINDS = [('run', 'Run'), ('operator', 'Operator'), ('key', 'Key'), ('command', 'Command'), ('decay', 'Decay'), ('link', 'Link')]
STATISTICS = "ALTER TABLE memories_privacyexport ALTER COLUMN content SET STATISTICS %s;"


def kind(**options):
    return models.CharField(choices=KINDS, max_length=8, **options)


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0032_audit_seals'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='privacyexport',
            name='export_gone_is_empty',
        ),
        migrations.AddConstraint(
            model_name='privacyexport',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['making', 'ready']), ('content', b''), _connector='OR'), name='export_gone_is_empty'),
        ),
        # The planner keeps no samples of it.
        migrations.RunSQL(STATISTICS % 0, STATISTICS % -1),
        migrations.AlterField('auditevent', 'actor_kind', kind(verbose_name='by')),
        migrations.AlterField('factrevision', 'actor_kind', kind()),
        migrations.AlterField('profilerevision', 'actor_kind', kind()),
        migrations.AlterField('profilesection', 'actor_kind', kind()),
        migrations.AlterField('privacycase', 'opened_kind', kind()),
        migrations.AlterField('privacycase', 'verified_kind', kind(blank=True)),
        migrations.AlterField('privacycase', 'approved_kind', kind(blank=True)),
    ]
