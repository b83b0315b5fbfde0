"""What gives people money or rights by their own word has a reason of its own to wait for review."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0038_corrected_authors'),
    ]

    operations = [
        migrations.AlterField(
            model_name='reviewitem',
            name='reason',
            field=models.CharField(choices=[('assistant_trust', 'Only the assistant stated it'), ('tool_trust', 'Only a tool stated it'), ('suggested', 'Found by simple rules'), ('not_as_said', 'The user may not have said it like this'), ('less_sure', 'Less certain than the existing fact'), ('outranked', 'Contradicts a more trusted source'), ('operators_word', 'Contradicts what an operator confirmed'), ('refused_before', 'Repeated after it was rejected'), ('near_refused', 'Similar to a rejected fact'), ('removal', 'May be no longer true'), ('proposed', 'An agent proposes other words'), ('forget_asked', 'An agent asks to forget it'), ('other_person', 'Differs between the merged end users'), ('imported', 'Imported; contradicts an existing fact'), ('not_judged', 'Similar to an existing fact'), ('instructions', 'Looks like an instruction to a model'), ('claims_rights', 'Claims money or rights'), ('possible_secret', 'May contain a secret'), ('poor_quality', 'Says too little about the conversation'), ('habit', 'A habit, found in several episodes'), ('change_of_mind', 'A change of mind, found in several episodes'), ('recurring_problem', 'A problem that comes again, found in several episodes')], max_length=20),
        ),
    ]
