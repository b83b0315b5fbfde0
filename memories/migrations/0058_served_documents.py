"""Contexts tell passages of files: one that is deleted takes the texts of logged contexts along that repeat it."""

from django.db import migrations

FORGET = """
CREATE TRIGGER logged_texts_of_passages AFTER DELETE ON memories_passage
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_passages ON memories_passage"


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0057_categories_of_facts'),
    ]

    operations = [
        migrations.RunSQL(FORGET, KEEP),
    ]
