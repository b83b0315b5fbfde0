"""A memory file that is deleted for good takes the texts of logged contexts along that repeat it."""

from django.db import migrations

# As in 0027_logged_contexts.
FORGET = """
CREATE TRIGGER logged_texts_of_files AFTER DELETE ON memories_memoryfile
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_files ON memories_memoryfile"


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0038_memory_files_in_roles"),
    ]

    operations = [migrations.RunSQL(FORGET, KEEP)]
