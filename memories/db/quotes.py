"""Quotes of turns that are deleted: wherever a fact or one of its versions holds one, it is emptied."""

import uuid
from collections.abc import Sequence

from django.db import connection
from django.db.models import Exists, OuterRef

from memories.models import Fact, FactEvidence

# Empties the raw text of revisions where it is what was quoted.
_FORGET = """
    WITH gone AS (
        SELECT DISTINCT fact_id, quote FROM memories_factevidence
        WHERE tenant_id = %(tenant)s AND turn_id = ANY(%(turns)s) AND quote <> ''
    ),
    revisions AS (
        UPDATE memories_factrevision r SET
            after = CASE WHEN r.after ->> 'raw' = gone.quote THEN r.after || '{"raw": ""}' ELSE r.after END,
            before = CASE WHEN r.before ->> 'raw' = gone.quote THEN r.before || '{"raw": ""}' ELSE r.before END
        FROM gone WHERE r.tenant_id = %(tenant)s AND r.fact_id = gone.fact_id
            AND gone.quote IN (r.after ->> 'raw', r.before ->> 'raw')
    )
    UPDATE memories_factevidence SET turn_id = NULL, quote = ''
    WHERE tenant_id = %(tenant)s AND turn_id = ANY(%(turns)s)
"""


def forget(tenant_id: uuid.UUID, turns: Sequence[uuid.UUID]) -> None:
    """Empty what these turns are quoted with. Their evidence stays, without the turn."""
    cited = FactEvidence.objects.filter(tenant=tenant_id, turn__in=turns).exclude(quote="")
    quoted = Exists(cited.filter(fact=OuterRef("pk"), quote=OuterRef("raw")))
    Fact.objects.filter(quoted, tenant=tenant_id, pk__in=cited.values("fact")).unquote()
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"tenant": tenant_id, "turns": list(turns)})
