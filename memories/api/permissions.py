"""Scopes: each operation names the one that a key needs for it (`@operation(scope=…)`)."""

from django.views import View
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memories.api.authentication import caller_of


class HasScope(BasePermission):
    """A key without the operation's scope gets 403 with its name; an operation without a scope lets nobody in."""

    def has_permission(self, request: Request, view: View) -> bool:
        caller = caller_of(request)
        if caller is None:
            return False
        method = (request.method or "").lower()
        operation = getattr(view, method, None) if method in view.http_method_names else None
        if operation is None:
            # Not for us to refuse: the view answers 405.
            return True
        scope = getattr(operation, "scope", None)
        if scope is None or scope not in caller.key.scopes:
            raise PermissionDenied(f"This key lacks the scope '{scope}'.", code="missing_scope")
        return True
