"""What signing in leaves behind, and the end of it: wrong passwords, and sessions of browsers that are over."""

from datetime import datetime

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session


def sweep_sign_ins(*, now: datetime) -> None:
    """Take away attempts that no longer lock anybody out, and sessions that no longer open anything."""
    AccessAttempt.objects.filter(attempt_time__lte=now - settings.AXES_COOLOFF_TIME).delete()
    Session.objects.filter(expire_date__lte=now).delete()
