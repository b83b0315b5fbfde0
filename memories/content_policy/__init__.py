"""What a tenant does not allow to be remembered: the one place that decides whether a text may be kept.

In: a text, the tenant, the road that it came by. Out: the category that forbids it, or an error; PolicyDrop is written.
"""

from memories.content_policy.drops import Drop, add, flush, note
from memories.content_policy.policies import PolicyInForce, check, in_force, in_force_now
from memories.models import Road

__all__ = ["Drop", "PolicyInForce", "Road", "add", "check", "flush", "in_force", "in_force_now", "note"]
