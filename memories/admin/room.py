"""What pages beside those of the models share: who may open them, and the frame that they are drawn in."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse


def check(request: HttpRequest, *permissions: str) -> None:
    """Errors: PermissionDenied, when the operator lacks one of these."""
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def draw(request: HttpRequest, template: str, *, status: int = 200, **shown: Any) -> TemplateResponse:
    """The page with its `title` and what else it shows."""
    return TemplateResponse(request, template, {**admin.site.each_context(request), **shown}, status=status)
