"""How the tables of a cluster's database are made: where they lie, keys, columns and triggers, on each node.

Two databases that came about in different ways can be compared by it. Names of keys say nothing; shards are one table.
Of a worker the shards alone count: its tables without a number are empty.
"""

from tests.distributed.cluster import DATABASE, Cluster, Node

_PLACED = """
    SELECT 'placed', c.relname, p.partmethod, p.repmodel,
        count(*) FILTER (WHERE p.partmethod = 'h') OVER (PARTITION BY p.colocationid)
    FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid WHERE p.partmethod = 'h' OR p.repmodel = 't'
"""
_NAME = r"regexp_replace({}::text, '_\d{{6,}}$', '')"
# One condition is written in several ways, with more casts or fewer.
_INDEX = r"regexp_replace(pg_get_indexdef(x.indexrelid), '::character varying|::text(\[\])?|[()]', '', 'g')"
_ON_NODES = f"""
    WITH ours AS (
        SELECT oid, {_NAME.format("relname")} AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname ~ '^memories_.*{{tables}}$'
    ), columns AS (
        SELECT attrelid, attnum, attname FROM pg_attribute WHERE attnum > 0
    )
    SELECT 'key', o.name, array(
            SELECT attname::text FROM columns WHERE attrelid = c.conrelid AND attnum = ANY (c.conkey) ORDER BY attname
        )::text, r.name, array(
            SELECT attname::text FROM columns WHERE attrelid = c.confrelid AND attnum = ANY (c.confkey) ORDER BY attname
        )::text, c.confdeltype::text, c.condeferrable::text
    FROM pg_constraint c JOIN ours o ON o.oid = c.conrelid JOIN ours r ON r.oid = c.confrelid
    WHERE c.contype = 'f' AND c.conparentid = 0
    UNION ALL
    SELECT 'check', o.name, pg_get_constraintdef(c.oid), '', '', '', ''
    FROM pg_constraint c JOIN ours o ON o.oid = c.conrelid WHERE c.contype = 'c'
    UNION ALL
    SELECT 'index', o.name, regexp_replace({_INDEX}, '^(CREATE \\w*)( INDEX)?.* USING', '\\1'),
        x.indisunique::text, x.indisprimary::text, x.indisvalid::text, ''
    FROM pg_index x JOIN ours o ON o.oid = x.indrelid
    UNION ALL
    SELECT 'column', o.name, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
        coalesce(a.attstattarget, -1)::text, a.attstorage::text
    FROM pg_attribute a JOIN ours o ON o.oid = a.attrelid WHERE a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT 'trigger', o.name, {_NAME.format("t.tgname")}, p.proname::text, p.prosrc, t.tgtype::text, ''
    FROM pg_trigger t JOIN ours o ON o.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE NOT t.tgisinternal AND p.proname LIKE 'memories\\_%'
    UNION ALL
    SELECT 'policy', o.name, {_NAME.format("p.polname")}, pg_get_expr(p.polqual, p.polrelid),
        p.polroles::regrole[]::text, '', ''
    FROM pg_policy p JOIN ours o ON o.oid = p.polrelid
    UNION ALL
    SELECT 'walled', o.name, c.relrowsecurity::text, c.relforcerowsecurity::text, '', '', ''
    FROM pg_class c JOIN ours o ON o.oid = c.oid
"""
# Rows on the coordinator's disk of tables whose rows are on the nodes.
_COPIED = """
    SELECT logicalrelid::text FROM pg_dist_partition WHERE (partmethod = 'h' OR repmodel = 't')
        AND pg_relation_size(logicalrelid) > 0 AND logicalrelid::text LIKE 'memories%'
"""

Shape = set[tuple[str, ...]]


def shape(cluster: Cluster, database: str = DATABASE) -> Shape:
    """Each line names the kind of node that has it."""
    found = _read(cluster.nodes[0], _PLACED, database)
    for node in cluster.nodes:
        kind, tables = ("coordinator", "[a-z]") if node is cluster.nodes[0] else ("worker", r"_\d{6,}")
        found |= {(kind, *line) for line in _read(node, _ON_NODES.replace("{tables}", tables), database)}
    return found


def flaws(cluster: Cluster, database: str = DATABASE) -> list[str]:
    """What no distributed table may have: a key without the tenant, rows that were left behind."""
    found = shape(cluster, database)
    spread = {line[1] for line in found if line[0] == "placed" and line[2] == "h"}
    lines = [line[1:] for line in found if line[0] in ("coordinator", "worker")]
    wrong = [
        f"{of}: no tenant in {what}"
        for kind, of, what, unique, *_ in lines
        if of in spread and kind == "index" and unique == "true" and "tenant_id" not in what
    ]
    wrong += [
        f"{of}: no tenant in the key {what}"
        for kind, of, what, target, *_ in lines
        if kind == "key" and {of, target} <= spread and "tenant_id" not in what
    ]
    wrong += [
        f"{of}: its key cannot hold"
        for kind, of, _, target, *_ in lines
        if kind == "key" and of not in spread and target in spread
    ]
    apart = {line[1] for line in found if line[0] == "placed" and line[2] == "h" and line[4] != str(len(spread))}
    wrong += [f"{table} lies apart from the others" for table in apart]
    return wrong + [f"{table} is on the coordinator, too" for (table,) in _read(cluster.nodes[0], _COPIED, database)]


def _read(node: Node, statement: str, database: str) -> Shape:
    with node.connect(database) as connection:
        # Else Citus hides the shards in the catalogue.
        connection.execute("SET citus.override_table_visibility TO off")
        return {tuple(map(str, row)) for row in connection.execute(statement).fetchall()}
