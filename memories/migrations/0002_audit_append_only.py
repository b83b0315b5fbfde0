from django.db import migrations

FORWARD = """
CREATE FUNCTION memories_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP;
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON memories_auditevent
    FOR EACH ROW EXECUTE FUNCTION memories_audit_is_append_only();
"""
BACKWARD = """
DROP TRIGGER audit_append_only ON memories_auditevent;
DROP FUNCTION memories_audit_is_append_only();
"""


class Migration(migrations.Migration):
    """The database itself refuses to change or delete what was recorded."""

    dependencies = [("memories", "0001_tables")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
