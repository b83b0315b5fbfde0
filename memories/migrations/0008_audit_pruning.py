"""A function of the owner prunes the audit trail: the role of web and worker may not delete from it.

Who may only record events calls the function, so the function checks the rules itself. The link that announces the
pruning must be in the chain, everything that goes must be sealed, and nothing younger than a tenant may set
(`keep_audit_days` in memories/conf/table.py) goes. The age does not bind the owner: `retain --now` is for trials.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION memories_prune_audit(of_tenant uuid, upto bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE gone bigint;
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.memories_auditseal s
        WHERE s.tenant_uuid = of_tenant AND s.kind = 'pruning' AND s.last_id = upto
    ) OR NOT EXISTS (
        SELECT FROM public.memories_auditseal s
        WHERE s.tenant_uuid = of_tenant AND s.kind = 'seal' AND s.last_id >= upto
    ) THEN
        RAISE EXCEPTION 'The audit trail is append-only: the chain does not say that this is pruned';
    END IF;
    IF NOT pg_has_role(session_user, current_user, 'MEMBER') AND EXISTS (
        SELECT FROM public.memories_auditevent e
        WHERE e.tenant_uuid = of_tenant AND e.id <= upto AND e.created_at > clock_timestamp() - interval '90 days'
    ) THEN
        RAISE EXCEPTION 'The audit trail is append-only: nothing younger than 90 days is pruned';
    END IF;
    PERFORM set_config('memoryhub.audit_pruning', 'on', true);
    DELETE FROM public.memories_auditevent WHERE tenant_uuid = of_tenant AND id <= upto;
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM set_config('memoryhub.audit_pruning', 'off', true);
    RETURN gone;
END $$;
"""
BACKWARD = "DROP FUNCTION memories_prune_audit(uuid, bigint);"


class Migration(migrations.Migration):
    replaces = [("memories", "0041_audit_pruning")]
    dependencies = [("memories", "0007_keys_and_sign_ins")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
