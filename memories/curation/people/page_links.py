"""Links to a person's own page: made by a key, opened once, and from then on a session of half an hour.

What is in the link, and in the cookie of the session, is the row's id and its tenant's, signed: nobody can make or
alter one, the database holds neither, and a wrong one is refused without a query. Whose page it is, the row alone says.
A link is over as soon as the person is somebody else (a merge, an erasure), its key ends, or the tenant switches the
page off.
"""

import base64
import binascii
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.core import signing
from django.db import transaction
from django.db.models import QuerySet
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.people.errors import PageLinkExpired, PageLinkOver, PageLinkUnknown, PageLinkUsed, PageOff
from memories.exceptions import BeyondTrust, Fault, InvalidInput
from memories.models import ActorKind, APIKey, EndUser, PersonLink, Tenant, WritesAs
from memories.models.people.tenants import PersonMay

# In seconds: how long a link waits to be opened.
TTL, LONGEST_TTL = 300, 3_600
SESSION = timedelta(minutes=30)
# Rows are kept so long, to say kindly why a link does not work any more.
KEPT = timedelta(days=1)
MOST_ORIGINS, LONGEST_ORIGIN = 10, 255
LINK_SALT, SESSION_SALT, FORM_SALT = "memories.person_link", "memories.person_session", "memories.person_form"
_LOCAL = ("localhost", "127.0.0.1", "::1")


def allowed(tenant: Tenant) -> list[str]:
    """What the tenant lets people do on their page, in a fixed order."""
    return [one for one in PersonMay.values if one in tenant.person_may]


def make_link(
    *,
    person: EndUser,
    key: APIKey,
    actor: Actor,
    now: datetime,
    ttl: int = TTL,
    language: str = "",
    allow: Sequence[str] | None = None,
    embed_origins: Sequence[str] = (),
) -> tuple[PersonLink, str]:
    """Make a link to the person's page, and return it with its token, which is stored nowhere.

    `ttl` is in seconds. `allow` None: all that the tenant allows. Errors: PageOff; InvalidInput where the tenant does
    not allow something, or an origin is none; BeyondTrust for a key that writes as an agent.
    """
    tenant = key.tenant
    if key.writes_as != WritesAs.USER:
        raise BeyondTrust(_("This key writes as an agent: it cannot open a page on which the person's word counts."))
    if not tenant.person_page or tenant.offboarded_at:
        raise PageOff
    may = allowed(tenant)
    _check(may, allow, embed_origins)
    with transaction.atomic():
        link = PersonLink.objects.create(
            tenant=tenant,
            end_user=person,
            key=key,
            generation=person.generation,
            language=language,
            allow=may if allow is None else [one for one in may if one in allow],
            embed_origins=[origin.lower() for origin in embed_origins],
            created_at=now,
            expires_at=now + timedelta(seconds=ttl),
        )
        _record("create", link, actor=actor, now=now)
    return link, _signed(link, LINK_SALT)


def _check(may: Sequence[str], allow: Sequence[str] | None, origins: Sequence[str]) -> None:
    faults = [
        Fault(f"/allow/{number}", "not_allowed", _("The tenant does not allow this on the page."))
        for number, one in enumerate(allow or ())
        if one not in may
    ]
    faults += [
        Fault(f"/embed_origins/{number}", "invalid", _("Give an origin, such as https://app.example.org."))
        for number, origin in enumerate(origins)
        if not is_origin(origin)
    ]
    if faults:
        raise InvalidInput(faults=faults)


def is_origin(text: str) -> bool:
    """Whether it is the origin of a site: https, or http on this machine alone; no path, no wildcard."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    written = f"[{host}]" if ":" in host else host
    is_known = parts.scheme == "https" or (parts.scheme == "http" and host in _LOCAL)
    is_plain = all((letter.isalnum() and letter.isascii()) or letter in "-.:" for letter in host)
    return (
        is_known
        and is_plain
        and bool(host)
        and text.lower() == f"{parts.scheme}://{written}{f':{port}' if port else ''}"
    )


def ids_in(text: str, salt: str) -> tuple[uuid.UUID, uuid.UUID]:
    """The tenant and the row that a link or a cookie names. Errors: PageLinkUnknown, the same for every reason."""
    try:
        given = base64.urlsafe_b64decode(signing.Signer(salt=salt).unsign(text) + "=")
        return uuid.UUID(bytes=given[:16]), uuid.UUID(bytes=given[16:])
    except (signing.BadSignature, binascii.Error, ValueError):
        raise PageLinkUnknown from None


def open_link(link_id: uuid.UUID, *, now: datetime, request_id: str = "") -> tuple[PersonLink, str]:
    """Exchange a link for its session, once: the row, and what the cookie holds.

    Errors: PageLinkUsed, PageLinkExpired, PageLinkOver, PageOff, PageLinkUnknown (its row is gone).
    """
    with transaction.atomic():
        rows = PersonLink.objects.filter(pk=link_id)
        # Of two openings at once the second finds it opened.
        is_first = rows.filter(opened_at=None, expires_at__gt=now).update(opened_at=now, ends_at=now + SESSION)
        link = _found(rows)
        if not is_first:
            raise PageLinkUsed if link.opened_at else PageLinkExpired
        check_usable(link, now=now)
        _record("open", link, actor=actor_of(link, request_id), now=now)
    return link, _signed(link, SESSION_SALT)


def session(link_id: uuid.UUID, *, now: datetime) -> PersonLink:
    """The link whose session a cookie names. Errors: PageLinkOver, PageOff, PageLinkUnknown."""
    link = _found(PersonLink.objects.filter(pk=link_id))
    check_usable(link, now=now)
    return link


def check_usable(link: PersonLink, *, now: datetime) -> None:
    """Errors: PageLinkOver, PageOff."""
    if not link.tenant.person_page or link.tenant.offboarded_at:
        raise PageOff
    person, key = link.end_user, link.key
    is_same = person.merged_into_id is None and person.generation == link.generation
    is_key_over = key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now)
    if not is_same or is_key_over or link.ends_at is None or link.ends_at <= now:
        raise PageLinkOver


def may(link: PersonLink, what: str) -> bool:
    """Whether the link, and the tenant as it is now, let the person do this."""
    return what in link.allow and what in link.tenant.person_may


def actor_of(link: PersonLink, request_id: str = "") -> Actor:
    """The person, as the trail has them: by the number of the link."""
    return Actor(kind=ActorKind.PERSON, id=str(link.pk), request_id=request_id)


def note_view(link: PersonLink, *, actor: Actor, now: datetime) -> None:
    """Write to the trail that the person looked at a page."""
    _record("view", link, actor=actor, now=now)


def end_session(link: PersonLink, *, actor: Actor, now: datetime) -> None:
    """The person is done."""
    with transaction.atomic():
        if PersonLink.objects.filter(pk=link.pk, ends_at__gt=now).update(ends_at=now):
            _record("end", link, actor=actor, now=now)


def form_token(link: PersonLink) -> str:
    """What each form of the session carries: no other site knows it."""
    return salted_hmac(FORM_SALT, f"{link.pk}", algorithm="sha256").hexdigest()


def is_form_token(link: PersonLink, given: str) -> bool:
    return constant_time_compare(given, form_token(link))


def sweep(now: datetime, *, most: int = 1_000) -> int:
    """Delete some of the rows that are over for long; how many."""
    old = PersonLink.objects.filter(created_at__lt=now - KEPT).order_by("created_at").values_list("pk", flat=True)
    return PersonLink.objects.filter(pk__in=list(old[:most])).delete()[0]


def _found(rows: QuerySet[PersonLink]) -> PersonLink:
    """Errors: PageLinkUnknown."""
    link = rows.select_related("tenant", "end_user__tenant", "key").first()
    if link is None:
        raise PageLinkUnknown
    return link


def _signed(link: PersonLink, salt: str) -> str:
    text = base64.urlsafe_b64encode(link.tenant_id.bytes + link.pk.bytes).decode().rstrip("=")
    return signing.Signer(salt=salt).sign(text)


def _record(verb: str, link: PersonLink, *, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, verb=verb, target=link, object_id=link.pk, tenant=link.tenant, now=now)
