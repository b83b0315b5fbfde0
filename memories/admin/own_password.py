"""One's own password: Django's form, which asks for the old one, with our verb behind it."""

from django.utils import timezone
from unfold.forms import AdminOwnPasswordChangeForm

from memories import curation
from memories.audit import Actor
from memories.models import Operator


class OwnPasswordForm(AdminOwnPasswordChangeForm):  # type: ignore[misc]  # Unfold has no types
    user: Operator

    def save(self, commit: bool = True) -> Operator:
        actor, password = Actor.operator(self.user), self.cleaned_data["new_password1"]
        # The view keeps this browser signed in by the new password, which it reads from here.
        self.user = curation.set_password(operator_id=self.user.pk, password=password, actor=actor, now=timezone.now())
        return self.user
