"""The shape of every list."""

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers


def page_of(row: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """`{"next", "previous", "results"}` of these rows, as the schema names it."""
    return inline_serializer(
        name=f"{row.__name__.removesuffix('Serializer')}Page",
        fields={
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": row(many=True),
        },
    )
