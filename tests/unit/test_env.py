"""The readers of environment variables: what they take, and that what they refuse names variable and remedy."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from memoryhub import env

NAME = "MEMORYHUB_OF_A_TEST"


def number() -> float:
    return env.number(NAME, 2.5, low=1, high=600)


def integer() -> int:
    return env.integer(NAME, 30, low=1, high=300)


def on() -> bool:
    return env.boolean(NAME, True)


def off() -> bool:
    return env.boolean(NAME, False)


def choice() -> str:
    return env.choice(NAME, "off", ("openai", "off"))


def text() -> str:
    return env.text(NAME, "x")


def words() -> list[str]:
    return env.words(NAME)


@pytest.mark.parametrize(
    ("read", "default"),
    [(number, 2.5), (integer, 30), (on, True), (off, False), (choice, "off"), (text, "x"), (words, [])],
)
@pytest.mark.parametrize("written", [None, "", "  ", "\t\n"])
def test_unset_or_blank_is_the_default(
    read: Callable[[], Any], default: Any, written: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if written is not None:
        monkeypatch.setenv(NAME, written)
    assert read() == default


@pytest.mark.parametrize(
    ("read", "written", "value"),
    [
        (number, "1", 1.0),
        (number, "600", 600.0),
        (number, " 2.75 ", 2.75),
        (number, "1e2", 100.0),
        (integer, "1", 1),
        (integer, "300", 300),
        (integer, " 42 ", 42),
        (on, "0", False),
        (on, "False", False),
        (on, "NO", False),
        (on, " off ", False),
        (off, "1", True),
        (off, "true", True),
        (off, "Yes", True),
        (off, "ON", True),
        (choice, "openai", "openai"),
        (choice, " OpenAI ", "openai"),
        (text, "  two words ", "two words"),
        (text, "密钥", "密钥"),
        (words, "a, b,,c ,", ["a", "b", "c"]),
        (words, "example.org", ["example.org"]),
    ],
)
def test_good_values_are_taken(
    read: Callable[[], Any], written: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, written)
    assert read() == value
    assert type(read()) is type(value)


@pytest.mark.parametrize(
    ("read", "written", "allowed"),
    [
        (number, "0.99", "a number from 1 to 600"),
        (number, "600.5", "a number from 1 to 600"),
        (number, "nan", "a number from 1 to 600"),
        (number, "inf", "a number from 1 to 600"),
        (number, "1e999", "a number from 1 to 600"),
        (number, "10s", "a number from 1 to 600"),
        (number, "1,5", "a number from 1 to 600"),
        (integer, "0", "a whole number from 1 to 300"),
        (integer, "301", "a whole number from 1 to 300"),
        (integer, "-1", "a whole number from 1 to 300"),
        (integer, "2.0", "a whole number from 1 to 300"),
        (integer, "thirty", "a whole number from 1 to 300"),
        (off, "2", "one of 1, true, yes, on, 0, false, no, off"),
        (off, "maybe", "one of 1, true, yes, on, 0, false, no, off"),
        (choice, "rules", "one of openai, off"),
    ],
)
def test_bad_values_stop_the_start(
    read: Callable[[], Any], written: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, written)
    with pytest.raises(ImproperlyConfigured) as refused:
        read()
    assert str(refused.value) == f"{NAME}={written!r} is not usable: set it to {allowed}, or unset it."


@pytest.mark.parametrize(
    ("written", "read"),
    [("", None), (" ", None), ("600/min", (600, 60)), ("1 / s", (1, 1)), ("5/hour", (5, 3600)), ("9/day", (9, 86400))],
)
def test_rates(written: str, read: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, written)
    assert env.rate(NAME) == read


@pytest.mark.parametrize("written", ["600", "0/min", "-1/min", "1.5/s", "600/week", "9999999999/s", "６/min/s"])
def test_what_is_no_rate(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, written)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}=.* e.g. 600/min"):
        env.rate(NAME)


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        (None, None, None),
        ("", " ", None),
        ("2.5", "0", (Decimal("2.5"), Decimal(0))),
        ("1e-3", "9", (Decimal("0.001"), Decimal(9))),
    ],
)
def test_two_prices_are_known_together(
    first: str | None, second: str | None, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, written in (("FIRST", first), ("SECOND", second)):
        monkeypatch.setenv(name, written or "")
    assert env.both("FIRST", "SECOND") == value


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [("2", "", "SECOND"), ("", "2", "FIRST"), ("x", "2", "FIRST"), ("2", "nan", "SECOND"), ("-1", "2", "FIRST")],
)
def test_one_price_or_none_that_is_a_number_is_refused(
    first: str, second: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST", first)
    monkeypatch.setenv("SECOND", second)
    with pytest.raises(ImproperlyConfigured, match=named):
        env.both("FIRST", "SECOND")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("smtp://localhost", env.MailServer("localhost", 25)),
        ("smtp+tls://hub:a%40b%3Ac@mail.example.com", env.MailServer("mail.example.com", 587, "hub", "a@b:c", True)),
        ("smtps://hub@[::1]:4650/", env.MailServer("::1", 4650, "hub", "", False, True)),
        (" ", None),
    ],
)
def test_mail_servers(written: str, read: env.MailServer | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYHUB_EMAIL_URL", written)
    assert env.mail_server("MEMORYHUB_EMAIL_URL") == read


@pytest.mark.parametrize(
    "written",
    ["mail.example.com", "http://m", "smtp://", "smtp://m:x", "smtp://m:99999", "smtp://u:hush@m/path", "smtp://m?a=b"],
)
def test_what_is_no_mail_server_is_refused_without_its_password(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYHUB_EMAIL_URL", written)
    with pytest.raises(ImproperlyConfigured, match="MEMORYHUB_EMAIL_URL is not usable") as raised:
        env.mail_server("MEMORYHUB_EMAIL_URL")
    assert "hush" not in str(raised.value)
