"""What a person may do about all of their memory: pause it, take a copy, ask for its erasure, delete a conversation."""

import uuid

from django.db import transaction
from django.http import HttpResponse, HttpResponseBase
from django.utils.translation import get_language

from memories.api.downloads import attached
from memories.curation.people.records import update_person
from memories.curation.sessions import delete_session, facts_of_session
from memories.curation.writing import lock_person
from memories.models import CaseType, ExportState, IdentityCheck
from memories.models.people.people import SWITCHES, who_switched
from memories.models.people.tenants import PersonMay
from memories.person_page import reading
from memories.person_page.frame import Visit, require, visited
from memories.privacy import cases
from memories.privacy.exports import downloads

# How such a request came in, as cases have it.
CHANNEL = "page"
_EXPORTED = (CaseType.ACCESS, CaseType.PORTABILITY)


@visited("GET")
def conversations(visit: Visit) -> HttpResponse:
    require(visit, PersonMay.CONVERSATIONS)
    return visit.page("conversations", found=reading.conversations(visit.person, number=visit.number))


@visited("GET")
def conversation(visit: Visit, session_id: uuid.UUID) -> HttpResponse:
    """What goes with a conversation, before it goes."""
    require(visit, PersonMay.CONVERSATIONS)
    session = reading.session_of(visit.person, session_id)
    going, staying = facts_of_session(session)
    shown = {"going": list(going[: reading.ROWS]), "staying": list(staying[: reading.ROWS])}
    return visit.page("conversation", session=session, turns=reading.first_turns(session), **shown)


@visited("POST")
def delete_conversation(visit: Visit, session_id: uuid.UUID) -> HttpResponseBase:
    require(visit, PersonMay.CONVERSATIONS)
    session = reading.session_of(visit.person, session_id)
    delete_session(session_id=session.pk, tenant=visit.link.tenant, actor=visit.actor, now=visit.now)
    return visit.back("person-conversations", said="conversation")


@visited("GET")
def readers(visit: Visit) -> HttpResponse:
    require(visit, PersonMay.READERS)
    found = reading.readings(visit.person, number=visit.number)
    return visit.page("readers", found=found, events=reading.done(visit.person) if found.number == 1 else [])


@visited("GET")
def data(visit: Visit) -> HttpResponse:
    person = visit.person
    return visit.page(
        "data",
        is_paused=not (person.capture and person.serve),
        # There is something that they can switch on; the rest may be off by others.
        is_paused_by_person=any(getattr(person, who_switched(name)) == visit.actor.kind for name in SWITCHES),
        export=reading.own_export(person),
        export_case=reading.open_case(person, *_EXPORTED),
        erasure_case=reading.open_case(person, CaseType.ERASURE),
    )


@visited("POST")
def pause(visit: Visit) -> HttpResponseBase:
    """Nothing new is stored of the person, and their contexts are empty, until they or an operator go on."""
    require(visit, PersonMay.PAUSE)
    on = [name for name in SWITCHES if getattr(visit.person, name)]
    if on:
        update_person(end_user=visit.person, changes=dict.fromkeys(on, False), actor=visit.actor, now=visit.now)
    return visit.back("person-data", said="paused")


@visited("POST")
def resume(visit: Visit) -> HttpResponseBase:
    """Go on with what the person paused; what others switched off stays off."""
    require(visit, PersonMay.PAUSE)
    own = [name for name in SWITCHES if getattr(visit.person, who_switched(name)) == visit.actor.kind]
    if own:
        update_person(end_user=visit.person, changes=dict.fromkeys(own, True), actor=visit.actor, now=visit.now)
    if any(not getattr(visit.person, name) for name in SWITCHES if name not in own):
        return visit.back("person-data", failed="off_by_others")
    return visit.back("person-data", said="resumed")


@visited("POST")
def export(visit: Visit) -> HttpResponseBase:
    """Open an access case and start it: the application has let the person in, so nobody else checks who asks."""
    require(visit, PersonMay.EXPORT)
    with transaction.atomic():
        lock_person(visit.person.pk)
        if reading.open_case(visit.person, *_EXPORTED) or reading.own_export(visit.person):
            return visit.back("person-data", failed="asked_before")
        case = _open(visit, CaseType.ACCESS)
        step = {"case_id": case, "expected_version": None, "actor": visit.actor, "now": visit.now}
        cases.verify_identity(how=IdentityCheck.SIGNED_IN, **step)  # type: ignore[arg-type]
        # As they read this page: the application may have told the hub of no language.
        cases.run_case(language=get_language() or "", **step)  # type: ignore[arg-type]
    return visit.back("person-data", said="export")


@visited("POST")
def download(visit: Visit) -> HttpResponseBase:
    """The copy, once: the hub keeps none."""
    require(visit, PersonMay.EXPORT)
    ready = reading.own_export(visit.person)
    if ready is None or ready.state != ExportState.READY:
        return visit.back("person-data", failed="not_ready")
    return attached(downloads.take_export(ready, visit.actor, visit.now))


@visited("POST")
def ask_for_erasure(visit: Visit) -> HttpResponseBase:
    """Open an erasure case, which staff check and two of them carry out."""
    require(visit, PersonMay.ERASURE)
    if visit.request.POST.get("sure") != "yes":
        return visit.back("person-data", failed="not_sure")
    with transaction.atomic():
        lock_person(visit.person.pk)
        if reading.open_case(visit.person, CaseType.ERASURE):
            return visit.back("person-data", failed="asked_before")
        _open(visit, CaseType.ERASURE)
    return visit.back("person-data", said="asked")


def _open(visit: Visit, kind: CaseType) -> uuid.UUID:
    case = cases.open_case(
        tenant=visit.link.tenant,
        user_id=visit.person.external_id,
        type=kind,
        channel=CHANNEL,
        actor=visit.actor,
        now=visit.now,
    )
    return case.pk
