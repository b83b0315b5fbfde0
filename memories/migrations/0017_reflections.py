"""Reflections: dreams that propose facts, and the review items about these."""

from django.db import migrations, models

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0016_logged_triples'),
    ]

    operations = [
        Together([
            migrations.RemoveConstraint(
                model_name='dream',
                name='dream_open_once',
            ),
            migrations.AddField(
                model_name='dream',
                name='kind',
                field=models.CharField(choices=[('files', 'Memory files'), ('reflection', 'Reflection')], default='files', max_length=10, verbose_name='kind'),
            ),
            migrations.AddField(
                model_name='dream',
                name='proposed',
                field=models.PositiveIntegerField(default=0, help_text='Of a reflection: how many facts it proposed.'),
            ),
            migrations.AlterField(
                model_name='reviewitem',
                name='kind',
                field=models.CharField(choices=[('quarantined', 'Unconfirmed'), ('conflict', 'Conflict'), ('possible_duplicate', 'Possible duplicate'), ('flagged', 'Flagged'), ('held', 'Held'), ('poor_episode', 'Poor episode'), ('pattern', 'Pattern')], max_length=18, verbose_name='kind'),
            ),
            migrations.AlterField(
                model_name='reviewitem',
                name='reason',
                field=models.CharField(choices=[('assistant_trust', 'Only the assistant stated it'), ('tool_trust', 'Only a tool stated it'), ('suggested', 'Found by simple rules'), ('less_sure', 'Less certain than the existing fact'), ('outranked', 'Contradicts a more trusted source'), ('operators_word', 'Contradicts what an operator confirmed'), ('refused_before', 'Repeated after it was rejected'), ('near_refused', 'Similar to a rejected fact'), ('removal', 'A less trusted source says it is no longer true'), ('proposed', 'An agent proposes other words'), ('forget_asked', 'An agent asks to forget it'), ('other_person', 'Differs between the merged end users'), ('imported', 'Imported; contradicts an existing fact'), ('not_judged', 'Similar to an existing fact'), ('instructions', 'Looks like an instruction to a model'), ('possible_secret', 'May contain a secret'), ('poor_quality', 'Says too little about the conversation'), ('habit', 'A habit, found in several episodes'), ('change_of_mind', 'A change of mind, found in several episodes'), ('recurring_problem', 'A problem that comes again, found in several episodes')], max_length=20),
            ),
            migrations.AddConstraint(
                model_name='dream',
                constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['running', 'waiting'])), fields=('end_user', 'tenant', 'agent_id', 'kind'), name='dream_open_once'),
            ),
        ]),
    ]
