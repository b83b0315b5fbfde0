"""Numbers of payment cards are cut, and no other number is; looking for them takes linear time."""

from typing import Any

from memories.text.secrets import cards
from memories.text.secrets.redaction import redact_message, redact_text
from tests.each import each
from tests.tables import texts
from tests.text.timing import takes_linear_time

MARK = "[redacted:card]"
# The numbers that issuers and payment services publish for tests.
CARDS = {
    "visa": "4111111111111111",
    "mastercard": "5555555555554444",
    "mastercard, new range": "2223003122003222",
    "discover": "6011111111111117",
    "jcb": "3530111333300000",
    "unionpay": "6200000000000005",
    "mir": "2200000000000004",
}
FULL_WIDTH = {ord(str(digit)): chr(0xFF10 + digit) for digit in range(10)}


def grouped(number: str, by: str) -> str:
    return by.join(number[place : place + 4] for place in range(0, len(number), 4))


@each("number", CARDS.values())
@each("around", ["{}", "pay with {}, please", "我用{}付款", "<{}>", '"{}"', "Anna,{},12/27", "{}."])
def test_cards_are_cut(number: str, around: str) -> None:
    for written in (number, grouped(number, " "), grouped(number, "-"), grouped(number, "\u00a0")):
        assert redact_text(around.format(written)) == (around.format(MARK), 1)


@each(
    ("text", "expected"),
    [
        ("3782 822463 10005 is my amex", f"{MARK} is my amex"),
        ("378282246310005", MARK),
        ("card 4111 1111 1111 1111 123", f"card {MARK} 123"),
        ("4111 1111 1111 1111 12/27", f"{MARK} 12/27"),
        (f"卡号：{CARDS['unionpay'].translate(FULL_WIDTH)}。", f"卡号：{MARK}。"),
        ("4111\u20111111\u20111111\u20111111", MARK),
        ("my order was paid with the card 4111111111111111", f"my order was paid with the card {MARK}"),
        # Lengths and ranges that others use as well, with a word for a card.
        ("Visa 4222222222222", f"Visa {MARK}"),
        ("carte bancaire 36227206271667", f"carte bancaire {MARK}"),
        ("银行卡6222021234567890128", f"银行卡{MARK}"),
        ("карта 6759649826438453", f"карта {MARK}"),
        ("12/27 4111 1111 1111 1111 visa", f"12/27 {MARK} visa"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert redact_text(text) == (expected, 1)


@each(
    "text",
    [
        # Luhn's digit is wrong.
        "4111 1111 1111 1112",
        "my card 1234 5678 9012 3456",
        # All of these pass it, in a range of an issuer or of hardly any.
        "Order 4111111111111111",
        "Order 4111111111111111 was paid by card",
        "invoice no. 5555555555554444",
        "订单号：4111111111111111",
        "Sendungsnummer 4111111111111111",
        "tracking 4111111111111111",
        "ORD-4111111111111111",
        "https://shop.example/o/4111111111111111",
        "https://shop.example/?id=4111111111111111",
        "0.4111111111111111",
        "v4111111111111111",
        "4111 1111 1111 1111 1111",
        "13 digits 4222222222222",
        "IMEI 490154203237518",
        "ICCID 8944110065000000009",
        "ISBN 978-3-16-148410-0",
        "ES91 2100 0418 4502 0005 1332",
        "DE89370400440532013000",
        "FR14 2004 1010 0505 0001 3M02 606",
        "+4111111111111111",
        "+49 151 23456789012345",
        "身份证620102199003071233",
        "550e8400-e29b-41d4-a716-446655440000",
        "1699999999999999",
        "Born 1990-05-05, 2026-11-23 15:04:05.123456",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert redact_text(text) == (text, 0)


def test_nothing_of_the_tables_is_a_card() -> None:
    sentences = ("wishes", "wishes_later", "requests", "no_requests", "signals", "no_signals", "supported")
    named = ("harmless", "harmless_fields", *sentences)
    said = [text for name in named for text in texts(name)]
    assert len(said) > 800
    assert [text for text in said if any(cards.find(text))] == []


@each(
    ("metadata", "count"),
    [
        ({"card_number": 4111111111111111}, 1),
        ({"cardNumber": "4222222222222"}, 1),
        ({"pan": "4111111111111111"}, 1),
        ({"payment": ["4111 1111 1111 1111"]}, 1),
        ({"order_id": "4111111111111111"}, 0),
        ({"orderId": 4111111111111111}, 0),
        ({"amount": 4111111111111.11, "at": 1699999999999}, 0),
    ],
)
def test_the_key_says_what_a_number_in_json_is(metadata: dict[str, Any], count: int) -> None:
    redacted = redact_message(content="hi", metadata=metadata)
    assert redacted.count == count
    assert (redacted.metadata == metadata) == (count == 0)


def test_twice_changes_nothing_more() -> None:
    once = redact_text("4111 1111 1111 1111 and 378282246310005, order 4111111111111111")[0]
    assert once == f"{MARK} and {MARK}, order 4111111111111111"
    assert redact_text(once) == (once, 0)


@each(
    "unit",
    ["4", "4 ", "4-", "4111 ", "4111 1111 1111 1111 ", "411111111111111 ", "card 4111111111111111,", "DE89 3704 "],
)
def test_time_is_linear(unit: str) -> None:
    assert takes_linear_time(lambda text: list(cards.find(text)), unit, 8_000)
