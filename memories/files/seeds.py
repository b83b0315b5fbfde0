"""The first file of an agent: read where nobody has written `/memories/AGENTS.md` yet.

It is no row. An agent reads it although nothing is stored of the person, and the first write replaces it. An empty file
would not do: frameworks show an agent no empty file, so that it would not learn that it has one.
"""

from memories import conf
from memories.models import Tenant

SEEDED = "/memories/AGENTS.md"
TEXT = """\
# Memory

Nothing is noted about this user yet. Keep notes here that later conversations need, in short lines:
- what they ask you to remember, and what they prefer
- what they are working on, and what was decided

Note only what they said or confirmed. Never note passwords, keys or other secrets.
"""


def seed_of(tenant: Tenant) -> str:
    """The first text for this tenant's agents; empty: none."""
    return (tenant.file_seed or TEXT) if conf.rules(tenant).seed_files else ""
