"""One-time links: who has one takes the export, once."""

import hashlib
from datetime import timedelta

import pytest
from django.db import transaction

from memories.audit import Actor
from memories.exceptions import ExportGone, NotFound
from memories.models import ActorKind, AuditEvent, PrivacyExport
from memories.privacy.exports import downloads, pieces
from tests import factories
from tests.database import at_once, elsewhere, held

NOW = factories.NOW
WEEK = timedelta(days=7)
ACTOR = Actor(kind=ActorKind.OPERATOR, id="7")


def ready() -> PrivacyExport:
    case = factories.privacy_case(factories.end_user(), type="access", state="completed")
    return factories.privacy_export(case, content=b"PK zip", size=6, expires_at=NOW + WEEK)


def events() -> list[tuple[str, str, str]]:
    rows = AuditEvent.objects.filter(object_type="PrivacyExport").order_by("id")
    return [(row.verb, row.actor_kind, row.actor_id) for row in rows]


@pytest.mark.django_db
def test_looking_takes_nothing_and_taking_takes_all() -> None:
    export = ready()
    token = downloads.link_for(export, ACTOR, NOW)
    for _ in range(3):
        assert downloads.look(token, NOW) == export
    download = downloads.take(token, NOW, "req-1")
    assert (b"".join(download.parts()), download.name) == (b"PK zip", f"export-{export.case_id}.zip")
    export.refresh_from_db()
    assert (export.state, export.pieces.count(), export.taken_at) == ("taken", 0, NOW)
    for again in (downloads.look, downloads.take):
        with pytest.raises(ExportGone):
            again(token, NOW)
    assert events() == [("link", "operator", "7"), ("download", "link", "")]
    assert {row.case_uuid for row in AuditEvent.objects.all()} == {export.case_id}
    assert AuditEvent.objects.get(verb="download").request_id == "req-1"


@pytest.mark.django_db
def test_of_the_token_only_the_digest_is_kept() -> None:
    export = ready()
    token = downloads.link_for(export, ACTOR, NOW)
    # 256 bits in base64.
    assert len(token) == 43
    export.refresh_from_db()
    assert bytes(export.token_digest or b"") == hashlib.sha256(token.encode()).digest()
    assert downloads.link_for(export, ACTOR, NOW) != token


@pytest.mark.django_db
def test_a_new_link_ends_the_one_before() -> None:
    export = ready()
    old, new = (downloads.link_for(export, ACTOR, NOW) for _ in range(2))
    for verb in (downloads.look, downloads.take):
        with pytest.raises(NotFound):
            verb(old, NOW)
    assert downloads.take(new, NOW).size


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "x", "ü", "a" * 43, "\x00", "'; --"])
def test_any_other_leads_nowhere(token: str) -> None:
    downloads.link_for(ready(), ACTOR, NOW)
    with pytest.raises(NotFound):
        downloads.take(token, NOW)


@pytest.mark.django_db
def test_after_a_week_nothing_is_left() -> None:
    export = ready()
    token = downloads.link_for(export, ACTOR, NOW)
    soon = NOW + WEEK - timedelta(seconds=1)
    assert downloads.sweep_exports(soon) == 0
    assert downloads.look(token, soon)
    # Whether or not anybody has swept.
    for _ in range(2):
        with pytest.raises(ExportGone):
            downloads.take(token, NOW + WEEK)
        downloads.sweep_exports(NOW + WEEK)
    export.refresh_from_db()
    assert (export.state, export.pieces.count()) == ("expired", 0)
    with pytest.raises(ExportGone):
        downloads.link_for(export, ACTOR, NOW + WEEK)


@pytest.mark.django_db
def test_an_erased_person_s_is_gone() -> None:
    export = ready()
    token = downloads.link_for(export, ACTOR, NOW)
    export.delete()
    with pytest.raises(NotFound):
        downloads.take(token, NOW)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gets_it() -> None:
    token = downloads.link_for(ready(), ACTOR, NOW)
    outcomes = at_once(4, lambda _: downloads.take(token, NOW))
    assert [b"".join(one.parts()) for one in outcomes if isinstance(one, downloads.Download)] == [b"PK zip"]
    assert [type(one) for one in outcomes].count(ExportGone) == 3
    assert [verb for verb, _, _ in events()] == ["link", "download"]


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_is_not_taken() -> None:
    """As when the file cannot be written."""
    export = ready()

    @transaction.atomic
    def move() -> None:
        assert downloads.take_export(export, ACTOR, NOW)
        raise IsADirectoryError

    with pytest.raises(IsADirectoryError):
        move()
    export.refresh_from_db()
    assert (export.state, b"".join(pieces.of(export))) == ("ready", b"PK zip")


@pytest.mark.django_db(transaction=True)
def test_the_sweep_waits_for_nobody() -> None:
    late, other = ready(), ready()
    with held(lambda: PrivacyExport.objects.select_for_update().get(pk=late.pk)):
        assert elsewhere(lambda: downloads.sweep_exports(NOW + WEEK)) == 1
    late.refresh_from_db()
    other.refresh_from_db()
    assert (late.state, other.state) == ("ready", "expired")
    assert downloads.sweep_exports(NOW + WEEK) == 1
