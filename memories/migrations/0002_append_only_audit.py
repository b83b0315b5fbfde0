"""The audit trail and the chain of its seals are append-only: triggers refuse to change, delete or empty them."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION memories_audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP;
END $$;
-- What retention prunes may go, once the link that says so is in the chain: it covers sealed events alone. Nothing is
-- pruned of what has no tenant.
CREATE FUNCTION memories_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('memoryhub.audit_pruning', true) = 'on' AND EXISTS (
        SELECT 1 FROM memories_auditseal s
        WHERE s.tenant_uuid = OLD.tenant_uuid AND s.kind = 'pruning' AND s.last_id >= OLD.id
    ) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'The audit trail is append-only: % is refused', TG_OP;
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON memories_auditevent
    FOR EACH ROW EXECUTE FUNCTION memories_audit_is_append_only();
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
DROP TRIGGER audit_append_only ON memories_auditevent;
DROP FUNCTION memories_audit_is_append_only();
DROP FUNCTION memories_audit_refuses();
"""


class Migration(migrations.Migration):
    replaces = [("memories", "0002_audit_append_only"), ("memories", "0032_audit_seals")]
    dependencies = [("memories", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
