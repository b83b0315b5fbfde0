"""Query strings, read strictly: bytes that Django would silently replace are refused here."""

from urllib.parse import parse_qsl

from django.http import HttpRequest

from memories.exceptions import Fault, InvalidInput

MAX_PARAMETERS = 50


def parameters(request: HttpRequest) -> dict[str, str]:
    """Parameter name → value, blank ones left out. Errors: InvalidInput with the parameter's name as its place."""
    raw = request.META.get("QUERY_STRING", "")
    try:
        # WSGI hands bytes over as Latin-1; curl sends Chinese unescaped.
        text = raw.encode("latin-1").decode("utf-8")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        detail = f"The query string is not UTF-8 or has more than {MAX_PARAMETERS} parameters."
        raise InvalidInput.at("", detail, code="encoding") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        if "\x00" in name or "\x00" in value:
            raise InvalidInput.at(name.replace("\x00", ""), "A parameter may not contain U+0000.", code="nul")
        if name in found:
            raise InvalidInput.at(name, "Give this parameter once.", code="repeated")
        found[name] = value
    return {name: value for name, value in found.items() if value}


def refuse_parameters(request: HttpRequest) -> None:
    """For an operation that takes none. Errors: InvalidInput."""
    faults = [Fault(name, "unknown_field", "There is no such parameter.") for name in parameters(request)]
    if faults:
        raise InvalidInput(faults=faults)
