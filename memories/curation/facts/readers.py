"""Whom a fact names as its readers: ids of its person. Another id would leave it where nobody is served it."""

from collections.abc import Collection, Sequence

from django.utils.translation import gettext as _

from memories.exceptions import Fault, InvalidInput
from memories.facts.candidate import Candidate
from memories.models import EndUser, Fact, MemoryScope


def check_readers(fact: Fact | Candidate, person: EndUser) -> None:
    """Check `allowed_users`: the person's ids, and of a public fact those of anybody whom the tenant has.

    The caller holds the person's row. Errors: InvalidInput, each fault at its place.
    """
    named = fact.allowed_users
    if not named:
        return
    people = EndUser.objects.filter(tenant=person.tenant_id, external_id__in=named)
    if fact.scope != MemoryScope.PUBLIC:
        people = people.with_aliases(person)
    check_names(named, known=set(people.order_by().values_list("external_id", flat=True)))


def check_names(named: Sequence[str], *, known: Collection[str]) -> None:
    """The same for a person of whom these ids are known. Errors: InvalidInput."""
    detail = _("This is no id of the person, so nobody would be served the fact. To share facts, use a group.")
    faults = [
        Fault(f"/allowed_users/{place}", "does_not_exist", detail)
        for place, name in enumerate(named)
        if name not in known
    ]
    if faults:
        raise InvalidInput(faults=faults)
