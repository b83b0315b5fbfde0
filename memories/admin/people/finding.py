"""Whom an operator means by an id or a name. Both are posted, and never part of an address."""

from django.utils.translation import gettext as _

from memories.models import EndUser, Tenant

# So many of those who fit a name are listed.
LISTED = 6


def find_person(tenant: Tenant, words: str) -> tuple[EndUser | None, str]:
    """The tenant's person with this id, else the only one with these words in the name; or None, and why.

    Any id of the person will do: since two were merged, or an id was changed, one may have several.
    """
    found = EndUser.objects.called(tenant, words).select_related("tenant").first()
    if found:
        return found, ""
    person, why_not = find_by_name(tenant, words)
    return person, "" if person else why_not or _("This tenant has no end user with this id or name.")


def find_by_name(tenant: Tenant, words: str) -> tuple[EndUser | None, str]:
    """The tenant's only person with these words in the name; or None, and why, if there are several."""
    named = EndUser.objects.filter(tenant=tenant, merged_into=None, display_name__icontains=words)
    fitting = list(named.select_related("tenant").order_by("display_name", "external_id")[:LISTED])
    if len(fitting) <= 1:
        return next(iter(fitting), None), ""
    ids = ", ".join(person.external_id for person in fitting)
    return None, _("Several end users have this in their name. Enter one of their ids: %(ids)s") % {"ids": ids}
