"""Numbers of payment cards: by their issuer's range, their length, Luhn's check digit and how they are written; pure.

One in ten numbers of an issuer's range passes the check digit. So an unbroken number that words before it call
something else stays, and one of a length or a range that others use as well needs a word for a card beside it.
"""

import re
from collections.abc import Iterator

from memories.text.secrets import effort

_SPACE = "[ \u2010\u2011\u2013-]"
# The first part begins with a digit: only there a search looks back. Not inside an address, a name or a fraction.
_NUMBER = re.compile(
    r"[2-689](?<![0-9A-Za-z_+./%&\\][0-9])(?<![0-9A-Za-z]-[0-9])"
    r"(?:[0-9]{12,18}"
    rf"|[0-9]{{3}}(?P<by>{_SPACE})(?:[0-9]{{4}}(?P=by)[0-9]{{4}}(?P=by)[0-9]{{4}}(?P<rest>(?P=by)[0-9]{{3}})?"
    r"|[0-9]{6}(?P=by)[0-9]{4,5}))"
    r"(?![0-9A-Za-z_]|\.[0-9])"
)
# Ranges, and the lengths of their numbers (ISO/IEC 7812 and what the issuers publish).
_USUAL = (
    (("4",), (16,)),
    (tuple(map(str, range(51, 56))) + tuple(map(str, range(2221, 2721))), (16,)),
    (("34", "37"), (15,)),
    (("6011", "65", *map(str, range(644, 650))), (16,)),
    (tuple(map(str, range(3528, 3590))), (16,)),
    (("62",), (16, 19)),
    (tuple(map(str, range(2200, 2205))), (16,)),
)
_RARE = (
    (("4",), (13, 19)),
    (("36", "38", "39", *map(str, range(300, 306))), (14, 16)),
    (("50", "56", "57", "58", "6", "81", "82"), (13, 14, 15, 16, 17, 18, 19)),
)
_WORDS_COST = 8
_LOOK_BACK, _LOOK_NEAR, _LOOK_AHEAD = 60, 30, 30
_CARD = re.compile(
    r"(?<!redacted:)\bcards?\b|\bcc\b|(?:credit|debit|bank|pay)[_-]?card|card[_-]?n|\bvisa\b|master ?card|\bamex\b"
    r"|american express|maestro|union ?pay|\bpan\b|\bcv[vc]2?\b|karten?\b|kartennummer|\bcartes?\b"
    r"|\btarjetas?\b|\bcart(?:ão|ao|ões)\b"
    r"|карт[аыуеойи]|卡|カード",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"order|invoice|tracking|shipment|parcel|ticket|reference|\bref\b|\bid\b|_id\b|serial|imei|iccid|isbn|iban|barcode"
    r"|\bean\b|phone|mobile|\btel\b|customer|member|policy|article|\bsku\b|account|licen[cs]e|transaction|batch|timestamp"
    r"|bestell|rechnung|auftrag|sendung|kunden|vorgang|konto|telefon|pedido|factura|env[ií]o|referencia|cuenta|tel[eé]fono"
    r"|commande|facture|colis|r[eé]f[eé]rence|compte|t[eé]l[eé]phone|encomenda|fatura|rastreio|conta\b|заказ|счет|счёт"
    r"|накладн|посылк|телефон|номер дела|订单|单号|编号|快递|电话|手机|身份证|发票|账号|注文|追跡|番号札|伝票|電話",
    re.IGNORECASE,
)
# Other digits beside it may belong to it.
_MORE_BEFORE, _MORE_AFTER = re.compile(rf"[0-9]{_SPACE}\Z"), re.compile(rf"{_SPACE}[0-9]{{4}}")
_IBAN = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]{4}){0,7} ?\Z")
_BORN = re.compile(r"[1-6][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{4}\Z")


def find(text: str) -> Iterator[tuple[int, int]]:
    """Where the numbers of cards begin and end; `text` has full-width digits in their ASCII form."""
    for found in _NUMBER.finditer(text):
        effort.spend(1)
        start, end = found.span()
        if found["rest"] and _is_card(found, end):
            yield start, end
        elif found["rest"] and _is_card(found, found.start("rest")):
            # What follows is the code on the back.
            yield start, found.start("rest")
        elif not found["rest"] and _is_card(found, end):
            yield start, end


def count_places(text: str) -> int:
    """How many numbers find() would look at."""
    return sum(1 for _ in _NUMBER.finditer(text))


def is_number(value: str | int) -> bool:
    """Whether a whole JSON value is one unbroken number as long as a card's."""
    return re.fullmatch(r"\s*[0-9]{13,19}\s*", str(value)) is not None


def _is_card(found: re.Match[str], end: int) -> bool:
    text, start = found.string, found.start()
    digits = re.sub(_SPACE, "", text[start:end])
    is_usual = _is_of(_USUAL, digits)
    if not (is_usual or _is_of(_RARE, digits)) or not _passes(digits) or _BORN.match(digits):
        return False
    # One number in ten comes here, and costs as much as the others together.
    effort.spend(_WORDS_COST)
    before = text[max(0, start - _LOOK_BACK) : start]
    if _IBAN.search(before):
        return False
    near = before[-_LOOK_NEAR:]
    if not found["by"] and _OTHER.search(near) and not _CARD.search(near):
        return False
    if _CARD.search(before) or _CARD.search(text, end, end + _LOOK_AHEAD):
        return True
    return is_usual and not _MORE_BEFORE.search(before) and not _MORE_AFTER.match(text, end)


def _is_of(ranges: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...], digits: str) -> bool:
    return any(len(digits) in lengths and digits.startswith(prefixes) for prefixes, lengths in ranges)


def _passes(digits: str) -> bool:
    """Luhn's check digit."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(value - 9 if value > 9 else value for value in doubled)) % 10 == 0
