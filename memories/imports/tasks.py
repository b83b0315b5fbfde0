"""The worker's task for imports. It names none: it looks for what is to be done."""

from django.utils import timezone

from memories.curation.imports import verbs
from memories.imports import working
from memories.tasks import outermost


@outermost
def import_some() -> int:
    """Work for a slice on uploaded files. Returns 1 when nothing is left to do now."""
    if working.run_slice(now=timezone.now()):
        verbs.enqueue()
        return 0
    return 1
