"""A link to a person's own page, as it is asked for and as it is answered."""

from typing import Any

from django.conf import settings
from rest_framework import serializers

from memories.api.v1.fields import ExactText, Identifier, OneOf, Strict, Timestamp, Whole, Words
from memories.curation.people.page_links import LONGEST_ORIGIN, LONGEST_TTL, MOST_ORIGINS, TTL
from memories.models.people.tenants import PersonMay

SHORTEST_TTL = 10


class NewPersonLinkSerializer(Strict):
    user_id = Identifier()
    ttl = Whole(
        min_value=SHORTEST_TTL,
        max_value=LONGEST_TTL,
        default=TTL,
        help_text="For how many seconds the link can be opened, once.",
    )
    language = OneOf(
        [code for code, _ in settings.LANGUAGES],
        required=False,
        default="",
        help_text="Of the page; without it the browser's.",
    )
    allow = serializers.ListField(
        child=OneOf(PersonMay.values),
        required=False,
        allow_null=True,
        default=None,
        max_length=len(PersonMay),
        help_text="What the person may do there, beside seeing; without it all that the tenant allows.",
    )
    embed_origins = Words(
        child=ExactText(max_length=LONGEST_ORIGIN),
        max_length=MOST_ORIGINS,
        required=False,
        default=list,
        help_text="Origins of the sites that may show the page in a frame, like https://app.example.org.",
    )


class PersonLinkSerializer(serializers.Serializer[Any]):
    """A link to a person's own page: open it at once, where the person is signed in."""

    id = serializers.UUIDField(help_text="As the audit trail has it.")
    url = serializers.URLField(help_text="Open it at once, where the person is signed in. It works once.")
    expires_at = Timestamp(help_text="Until when it can be opened.")
    allow = serializers.ListField(child=serializers.ChoiceField(PersonMay.values))
