"""Who asks the store: a key for everybody of its tenant, or for one person alone."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memories.exceptions import Fault, KeyBound
from memories.models import EndUser, Tenant
from memories.store import namespaces

_OTHER = "This key is for one person alone: name a namespace of that person."


@dataclass(frozen=True)
class StoreViewer:
    """The tenant and the only person whose items it may touch, as the key calls them; empty: everybody's."""

    tenant: Tenant
    user_id: str = ""
    key_id: uuid.UUID | None = None

    @property
    def patterns(self) -> list[str]:
        found: list[str] = self.tenant.person_namespaces
        return found

    @cached_property
    def people(self) -> list[uuid.UUID] | None:
        """The person and the names that lead to them; None: everybody, and nobody."""
        if not self.user_id:
            return None
        person = EndUser.objects.called(self.tenant, self.user_id).values("pk")[:1]
        found = EndUser.objects.of(self.tenant).filter(pk__in=person).values_list("pk", flat=True).first()
        return list(EndUser.objects.with_aliases(found).values_list("pk", flat=True)) if found else []

    def hold(self, labels: Sequence[str], *, at: str, whole: bool = True) -> None:
        """Check a namespace, or where it is not `whole` a prefix of some, against the key. Errors: KeyBound.

        A prefix that names nobody is let through: what is found is the person's alone.
        """
        if not self.user_id:
            return
        named = namespaces.person_in(labels, self.patterns)
        if named is None and not whole:
            return
        if named is None or not self._is_own(named.user_id):
            raise KeyBound(_OTHER, faults=[Fault(at, KeyBound.code, _OTHER)])

    def _is_own(self, user_id: str) -> bool:
        if user_id == self.user_id:
            return True
        found = EndUser.objects.filter(tenant=self.tenant, external_id=user_id).values_list("pk", flat=True).first()
        return found is not None and found in (self.people or ())
