"""A triple that is deleted takes the texts of logged contexts along that repeat it, as other memories do."""

from django.db import migrations

FORGET = """
CREATE TRIGGER logged_texts_of_triples AFTER DELETE ON memories_graphtriple
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_triples ON memories_graphtriple"


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0015_dreams'),
    ]

    operations = [
        migrations.RunSQL(FORGET, KEEP),
    ]
