"""Documents that came by another way than a request, read as strictly as its body: by commands that import."""

import json
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ValidationError
from rest_framework.serializers import Serializer

from memories.api import parsers, shapes
from memories.api.errors import faults_of
from memories.exceptions import InvalidInput

TOO_LARGE, TOO_DEEP = parsers.BodyTooLarge.default_code, "depth"


def read(expected: type[Serializer[Any]], document: Any) -> dict[str, Any]:
    """The document as the operation with this serializer reads its body. Errors: InvalidInput with the faults."""
    try:
        body = json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
    except RecursionError as error:
        raise InvalidInput.at("", "It is nested too deeply.", code=TOO_DEEP) from error
    if len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise InvalidInput.at("", str(parsers.BodyTooLarge.default_detail), code=TOO_LARGE)
    try:
        return shapes.validated(expected, parsers.decode(body, most=shapes.most_values(expected)))
    except ValidationError as error:
        raise InvalidInput(faults=list(faults_of(error.detail))) from error


def check_measure(document: bytes, *, times: int) -> None:
    """Whether so many bodies could have what these bytes have; nothing is built of them. Errors: InvalidInput."""
    if len(document) > times * settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise InvalidInput.at("", str(parsers.BodyTooLarge.default_detail), code=TOO_LARGE)
    if parsers.measure(document, most=times * shapes.MOST_VALUES) > parsers.MAX_DEPTH:
        raise InvalidInput.at("", "It is nested too deeply.", code=TOO_DEEP)
