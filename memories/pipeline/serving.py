"""Whether anything of a person may be served at all."""

from dataclasses import dataclass

from memories.models import EndUser, Tenant
from memories.models.hand_written import first, read, selected

_PERSON = ("id", "tenant_id", "external_id", "serve", "restricted_at")
# By hand: every context and every search begins with it.
_FIND = f"""
    SELECT {selected("p", _PERSON)} FROM memories_enduser p
    WHERE p.tenant_id = %(tenant)s AND p.external_id = %(user)s
"""  # noqa: S608  (columns of our own models)


@dataclass(frozen=True)
class Audience:
    """The person whose memories may be served; None for an unknown, restricted or switched-off one."""

    person: EndUser | None = None
    restricted: bool = False
    serve: bool = True


def audience(*, tenant: Tenant, user_id: str) -> Audience:
    """Who is meant by `user_id`, if their memories may be served."""
    row = first(_FIND, {"tenant": tenant.pk, "user": user_id})
    if row is None:
        return Audience()
    person = read(EndUser, _PERSON, row)
    if person.restricted_at:
        return Audience(restricted=True)
    if not (tenant.serve and person.serve):
        return Audience(serve=False)
    person.tenant = tenant
    return Audience(person)
