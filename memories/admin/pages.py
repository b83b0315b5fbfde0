"""Which model has which page."""

from django.contrib import admin
from django.db.models import Model

from memories.admin.cases import CasePage
from memories.admin.episodes import EpisodePage
from memories.admin.facts import FactPage
from memories.admin.forgetting import DecayPassPage
from memories.admin.keys import KeyPage
from memories.admin.operators import OPERATOR_PAGES
from memories.admin.page import Page
from memories.admin.people import PersonPage
from memories.admin.reviews import ReviewPage
from memories.admin.runs import RunPage
from memories.admin.sessions import SessionPage
from memories.admin.tenants import TenantPage
from memories.admin.trail import TrailPage
from memories.models import (
    APIKey,
    AuditEvent,
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    PrivacyCase,
    ReviewItem,
    Session,
    Tenant,
)

PAGES: tuple[tuple[type[Model], type[Page]], ...] = (
    (ReviewItem, ReviewPage),
    (EndUser, PersonPage),
    (Fact, FactPage),
    (Episode, EpisodePage),
    (Session, SessionPage),
    (ExtractionRun, RunPage),
    (DecayPass, DecayPassPage),
    (PrivacyCase, CasePage),
    (APIKey, KeyPage),
    (Tenant, TenantPage),
    (AuditEvent, TrailPage),
    *OPERATOR_PAGES,
)


def register_all() -> None:
    for model, page in PAGES:
        admin.site.register(model, page)
