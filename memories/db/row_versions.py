"""What changes when a row does: the caches of the retrieval compare it."""

from collections.abc import Iterable

from django.db import connection


def version_of_row(columns: Iterable[str], alias: str = "") -> str:
    """SQL for the version of a row of which these columns are cached."""
    if connection.settings_dict["DISTRIBUTED"]:
        # Nodes do not give a row's place away, and a tenant that moves has others.
        return f"hash_record_extended(ROW({', '.join(alias + name for name in columns)}), 0)"
    # A new version of a row has another ctid and xmin.
    return f"hashtidextended({alias}ctid, {alias}xmin::text::bigint)"


def version_of_vector(alias: str = "") -> str:
    """SQL for the version of a row with a vector."""
    if connection.settings_dict["DISTRIBUTED"]:
        return f"hashtextextended(encode({alias}text_digest, 'hex'), {alias}id)"
    return f"hashint8extended({alias}id, {alias}xmin::text::bigint)"
