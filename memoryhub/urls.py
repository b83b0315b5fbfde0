"""Addresses: the API, the admin, the page for the person, the two probes and the metrics."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularSwaggerSplitView

from memories.api import downloads, errors, health, metrics
from memories.api.schema import DocumentView

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("api/v1/", include("memories.api.v1.urls")),
    path("api/schema/", DocumentView.as_view(), name="schema"),
    # The variant with its script in a file: the policy allows no inline scripts.
    path("api/docs/", SpectacularSwaggerSplitView.as_view(authentication_classes=[], url_name="schema"), name="docs"),
    re_path(r"^api(?:/|$)", errors.unknown_address),
    path("me/", include("memories.person_page.urls")),
    path("me", RedirectView.as_view(pattern_name="person-page")),
    path("exports/<str:token>", downloads.export_page, name="export"),
    # django-allauth reverses these names.
    path("admin/login/", admin.site.login, name="account_login"),
    path("admin/sign-in/", include("allauth.socialaccount.providers.openid_connect.urls")),
    path("admin/second-factor/", include("allauth.mfa.urls")),
    path("admin/", admin.site.urls),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
]
handler400 = "memories.api.errors.bad_request"
handler403 = "memories.admin.site.error_pages.forbidden"
handler404 = "memories.admin.site.error_pages.not_found"
handler500 = "memories.api.errors.server_error"
