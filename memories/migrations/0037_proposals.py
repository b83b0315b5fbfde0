"""What agents propose of facts, and ask to be forgotten."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0036_store_items'),
    ]

    operations = [
        migrations.AlterField(
            model_name='reviewitem',
            name='reason',
            field=models.CharField(choices=[('assistant_trust', 'Only the assistant stated it'), ('tool_trust', 'Only a tool stated it'), ('suggested', 'Found by simple rules'), ('less_sure', 'Less certain than the existing fact'), ('outranked', 'Contradicts a more trusted source'), ('operators_word', 'Contradicts what an operator confirmed'), ('refused_before', 'Repeated after it was rejected'), ('near_refused', 'Similar to a rejected fact'), ('removal', 'A less trusted source says it is no longer true'), ('proposed', 'An agent proposes other words'), ('forget_asked', 'An agent asks to forget it'), ('other_person', 'Differs between the merged end users'), ('imported', 'Imported; contradicts an existing fact'), ('not_judged', 'Similar to an existing fact'), ('instructions', 'Looks like an instruction to a model'), ('possible_secret', 'May contain a secret'), ('poor_quality', 'Says too little about the conversation')], max_length=20),
        ),
    ]
