"""The row about the operators' pages, at 5,000 people with 100,000 facts: each list, the pages of their tenant and its
agent, and those of a busy person and of one with 20,000 turns."""

import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlencode

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Measured, Server
from benchmarks.rows import beside, row
from benchmarks.stage import ROOT, Stage

SLUG, FACTS_EACH = "browsed", 20
LIST, PERSON = at_most(300, 150), at_most(400, 200)
PEOPLE = ("the busy person", "the talkative person")
# The second has so many for each of the others: 20,000 of 5,000 people.
TURNS_FOR_EACH = 4
# The first are warm-up, where several are measured.
WARM_UP = 2


@row("pages")
def pages(stage: Stage) -> Iterator[Figure]:
    """Each page by one signed-in browser; the 95th of a hundred."""
    people = stage.size.people * 5 // 2
    _seed(people)
    yield from measured(stage.hub, requests=max(1, stage.size.requests // 4))
    yield beside(stage, "the pages")


def measured(hub: Server, *, requests: int) -> Iterator[Figure]:
    """The figures of every page, of what the hub holds already."""
    cookie, warm_up = signed_in(), WARM_UP if requests > 1 else 0
    for what, address in _addresses():
        target = PERSON if what.startswith(PEOPLE) else LIST
        asked = [hub.request("GET", address, Cookie=cookie)] * (warm_up + requests)
        spans = load.run(hub, [asked]).milliseconds[warm_up:]
        yield Figure(f"page, 1 client, p95: {what}", Measured(0, spans).p95, "ms", target)


def _seed(people: int) -> None:
    """By the command that is documented; then what autovacuum would do some time later."""
    # Django is set up only when a stage is open.
    from django.db import connection, connections
    from django.utils import timezone

    from memories.management import seeding
    from tests import factories

    tenant = factories.tenant(slug=SLUG)
    command = [sys.executable, "manage.py", "seed_facts", "--tenant", SLUG, "--people", str(people), "--talk"]
    given = [*command, "--facts-per-person", str(FACTS_EACH)]
    subprocess.run(given, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    seeding.seed_talker(tenant=tenant, turns=people * TURNS_FOR_EACH, now=timezone.now())
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    # The clients are forked: they must not share a connection.
    connections.close_all()


def signed_in() -> str:
    """The cookie of an administrator's session."""
    from django.conf import settings
    from django.db import connections
    from django.test import Client

    from memories.models import Operator
    from tests import factories

    client = Client()
    operator = Operator.objects.filter(username=SLUG).first() or factories.operator(username=SLUG)
    client.force_login(operator)
    connections.close_all()
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def _addresses() -> list[tuple[str, str]]:
    """Each page by its name: the dashboard, all lists with and without a tab, and a record of each kind."""
    from django.contrib import admin
    from django.db import connections
    from django.urls import reverse

    from memories.admin.lists import tabs
    from memories.admin.people import timeline
    from memories.admin.people.timeline import TimelineFilters
    from memories.admin.site.page import url_of
    from memories.models import Agent, EndUser, Tenant

    found = [
        ("the dashboard", reverse("admin:index")),
        ("its trends", reverse("admin:trends")),
        ("parked work", reverse("admin:parked")),
    ]
    for model in admin.site._registry:
        name, address = f"the list of {model._meta.verbose_name_plural}", _list(model)
        found.append((name, address))
        found += [(f"{name}, {tab.slug}", f"{address}?tab={tab.slug}") for tab in tabs.tabs_of(model)]
        record = model._default_manager.order_by("pk").first()
        if record is not None and model is not EndUser:
            found.append((f"one of the {model._meta.verbose_name_plural}", url_of(record)))
    tenant = Tenant.objects.get(slug=SLUG)
    found.append(("the tenant of all these", url_of(tenant)))
    found.append(("its agent", url_of(Agent.objects.get(tenant=tenant))))
    for what, name in zip(PEOPLE, ("seeded-0", "talker"), strict=True):
        person = EndUser.objects.get(tenant=tenant, external_id=name)
        found.append((what, url_of(person)))
        older = timeline.read(person, timeline.SOURCES, TimelineFilters()).older
        found.append((f"{what}, further back", f"{url_of(person)}?{urlencode({'before': older})}"))
    connections.close_all()
    return found


def facts_address() -> str:
    """The list of facts."""
    # Django is set up only when a stage is open.
    from memories.models import Fact

    return _list(Fact)


def _list(model: type) -> str:
    from django.urls import reverse

    opts = model._meta  # type: ignore[attr-defined]
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
