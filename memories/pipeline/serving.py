"""Whether anything of a person may be served at all."""

from dataclasses import dataclass

from memories.models import EndUser, Tenant


@dataclass(frozen=True)
class Audience:
    """The person whose memories may be served; None for an unknown, restricted or switched-off one."""

    person: EndUser | None = None
    restricted: bool = False
    serve: bool = True


def audience(*, tenant: Tenant, user_id: str) -> Audience:
    """Who is meant by `user_id`, if their memories may be served."""
    person = EndUser.objects.of(tenant).filter(external_id=user_id).first()
    if person is None:
        return Audience()
    if person.restricted_at:
        return Audience(restricted=True)
    if not (tenant.serve and person.serve):
        return Audience(serve=False)
    person.tenant = tenant
    return Audience(person)
