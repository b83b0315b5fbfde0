"""/person-links: an application makes a link with which a person opens the page of their own memory."""

from django.conf import settings
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.person_links.serializers import NewPersonLinkSerializer, PersonLinkSerializer
from memories.curation.people import page_links
from memories.models import Scope


class PersonLinksView(Endpoint):
    @operation(
        "personLink",
        "Make a link with which a person opens the page of their own memory, once",
        description="The tenant switches the page on, and says what people may do there. The application makes sure "
        "who gets the link.",
        scope=Scope.WRITE,
        bound=Bound.WHOLE_PERSON,
        request=NewPersonLinkSerializer,
        answers={201: PersonLinkSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewPersonLinkSerializer)
        person = lookups.person(tenant=self.tenant, user_id=given.pop("user_id"))
        link, token = page_links.make_link(person=person, key=self.caller.key, actor=self.actor, now=self.now, **given)
        url = f"{settings.PUBLIC_URL}{reverse('person-open', args=[token])}"
        shown = {"id": link.pk, "url": url, "expires_at": link.expires_at, "allow": link.allow}
        # The link is a key to the page: no cache keeps it.
        return Response(PersonLinkSerializer(shown).data, status=201, headers={"Cache-Control": "no-store"})
