"""Each decoder and each kind of table shows one marker that was planted there; what may stay is no hit."""

import base64
import gzip
import io
import json
import pickle
import re
import zipfile
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.db import connection

from memories.curation.access.keys import Binding
from memories.models import EndUser, PrivacyCase
from memories.privacy import verification
from memories.privacy.searching import search_terms
from memories.privacy.verification import Findings
from tests import factories

pytestmark = pytest.mark.django_db
SAID = "Zaphod keeps 42 otters behind the Kraków bakery"
CHINESE = "我在桂林的漓江边养了四十二只水獭，每天喂鱼"
NAME = "zaphod@example.org"


@pytest.fixture
def person(db: None) -> EndUser:
    """Somebody of whom there is a bit of everything."""
    someone = factories.end_user(external_id=NAME, display_name="Zaphod Beeblebrox", metadata={"crm": "CRM-77123-XY"})
    session = factories.session(someone, [("user", SAID), ("assistant", CHINESE)], session_id="s-zaphod-1")
    known = factories.fact(someone, "Keeps otters behind the bakery in Kraków")
    factories.evidence(known, session.turns.get(number=1))
    factories.episode(session)
    return someone


@pytest.fixture
def case(person: EndUser) -> PrivacyCase:
    """Its person was erased by hand."""
    row = factories.privacy_case(person, state="verifying", needles=search_terms.collect(person))
    person.delete()
    row.refresh_from_db()
    return row


@pytest.fixture(autouse=True)
def home(settings: LazySettings, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    return tmp_path


def verify(case: PrivacyCase) -> Findings:
    return verification.verify(case)


def run(sql: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)


def test_after_a_whole_erasure_nothing_is_found(case: PrivacyCase) -> None:
    found = verify(case)
    assert (found.hits, found.mentions) == ({}, {})
    assert found.tables > 60
    assert found.rows > 100
    assert found.bytes > 10_000
    assert set(found.as_json()) == {"tables", "rows", "bytes", "hits", "mentions", "skipped"}


def test_before_it_every_place_is_found(person: EndUser) -> None:
    case = factories.privacy_case(person, state="verifying", needles=search_terms.collect(person))
    found = verify(case)
    assert {
        "memories.EndUser.external_id",
        "memories.EndUser.display_name",
        "memories.EndUser.metadata",
        "memories.Session.external_id",
        "memories.Turn.content",
        "memories.Fact.content",
        "memories.FactEvidence.fact",
        "memories.SessionQueue.session",
        "api:users",
        "api:context",
        "api:turns",
    } <= set(found.hits)
    assert not any(SAID in place or NAME in place for place in json.dumps(found.as_json()).split('"'))


def test_with_nothing_to_look_for_it_does_not_say_clean(person: EndUser, settings: LazySettings) -> None:
    case = factories.privacy_case(person, state="verifying")
    assert verify(case).hits == {"needles": 1}
    case.needles = search_terms.collect(person)
    settings.MEMORYHUB_PEPPER = "another"
    assert verify(case).hits == {"needles": 1}


# What makes the table, and the expression that the text goes through.
TABLES = {
    "plain": ("CREATE TABLE {0} (held text)", "%s"),
    "of_varchar": ("CREATE TABLE {0} (held varchar(900))", "%s"),
    "of_json": ("CREATE TABLE {0} (held json)", "json_build_object('a', json_build_array(%s::text))"),
    "of_keys": ("CREATE TABLE {0} (held jsonb)", "jsonb_build_object(%s::text, 1)"),
    "of_arrays": ("CREATE TABLE {0} (held text[])", "ARRAY['x', %s]"),
    "of_bytes": ("CREATE TABLE {0} (held bytea)", "convert_to(%s, 'UTF8')"),
    "hidden.away": ("CREATE SCHEMA hidden; CREATE TABLE {0} (held text)", "%s"),
    "parted": (
        """CREATE TABLE {0} (held text) PARTITION BY HASH (held);
        CREATE TABLE {0}_1 PARTITION OF {0} FOR VALUES WITH (MODULUS 1, REMAINDER 0)""",
        "%s",
    ),
    "of_a_domain": ("CREATE DOMAIN note AS text; CREATE TABLE {0} (held note)", "%s"),
    "composite": ("CREATE TYPE pair AS (a int, b text); CREATE TABLE {0} (held pair)", "ROW(1, %s)::pair"),
    "unlogged": ("CREATE UNLOGGED TABLE {0} (held text)", "%s"),
}


TEXTS = (SAID, CHINESE, NAME)


def test_tables_that_django_knows_nothing_of(case: PrivacyCase) -> None:
    for name, (made, said) in TABLES.items():
        for statement in made.format(name).split(";"):
            run(statement)
        for text in TEXTS:
            run(f"INSERT INTO {name} SELECT {said}", text)
    run(f"CREATE MATERIALIZED VIEW viewed AS SELECT '{SAID}'::text AS held")
    places = {name if "." in name else f"public.{name}": len(TEXTS) for name in TABLES} | {"public.viewed": 1}
    # Rows are in the part.
    places["public.parted_1"] = places.pop("public.parted")
    assert verify(case).hits == {f"{place}.held": rows for place, rows in places.items()}


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "read me " * 50)
        archive.writestr("data.json", json.dumps({"turns": [{"content": text}] * 20}))
    return file.getvalue()


WORDS: dict[str, Callable[[str], str]] = {
    "escapes": lambda text: json.dumps({"a": text}),
    "escapes of escapes": lambda text: json.dumps(json.dumps([text])),
    "a URL": lambda text: "/search?q=" + quote(text),
    "HTML": lambda text: "<p>" + "".join(f"&#{ord(one)};" for one in text),
    "repr of bytes": lambda text: repr(text.encode()),
    "hex": lambda text: text.encode().hex(),
    "base64": lambda text: "token " + base64.b64encode(text.encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 after an id": lambda text: f"{UUID(int=5)}\n{base64.b64encode(text.encode()).decode()}",
    "base64 after a tab": lambda text: "token:\t" + base64.b64encode(text.encode()).decode(),
    "base64 on a line of its own": lambda text: "token:\n" + base64.b64encode(text.encode()).decode(),
    "the same in JSON": lambda text: json.dumps({"a": "token:\n" + base64.b64encode(text.encode()).decode()}),
    "base64 in lines": lambda text: base64.encodebytes((f"{text}, " * 3).encode()).decode(),
    "base64 of base64": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 of zlib": lambda text: base64.b64encode(zlib.compress(text.encode())).decode(),
    "base64 of gzip": lambda text: base64.b64encode(gzip.compress(text.encode())).decode(),
    "base64 of a zip": lambda text: base64.b64encode(zipped(text)).decode(),
    "base64 of a pickle": lambda text: base64.b64encode(pickle.dumps({"a": (text,)})).decode(),
}
BYTES: dict[str, Callable[[str], bytes]] = {
    "zlib": lambda text: zlib.compress(text.encode(), 1),
    "zlib, best": lambda text: zlib.compress(text.encode(), 9),
    "gzip": lambda text: b"header" + gzip.compress(text.encode()),
    "zip": zipped,
    "a compressed pickle of JSON": lambda text: zlib.compress(pickle.dumps({"body": json.dumps({"q": text})})),
}


def planted(ways: dict[str, Callable[[str], Any]], kind: str) -> dict[str, int]:
    """A table for each way with a row for each text; the hits that they must give."""
    tables = {f"in_{re.sub(r'[^a-z]+', '_', way.lower())}": said for way, said in ways.items()}
    assert len(tables) == len(ways)
    for name, said in tables.items():
        run(f"CREATE TABLE {name} (held {kind})")
        for text in TEXTS:
            run(f"INSERT INTO {name} VALUES (%s)", said(text))
    return {f"public.{name}.held": len(TEXTS) for name in tables}


def test_what_a_text_says_in_other_words(case: PrivacyCase) -> None:
    expected = planted(WORDS, "text")
    run("CREATE TABLE others (held text)")
    run("INSERT INTO others VALUES ('harmless'), ('100 %% & more')")
    assert verify(case).hits == expected


def test_what_bytes_say_in_other_words(case: PrivacyCase, home: Path) -> None:
    expected = planted(BYTES, "bytea")
    (home / "exports").mkdir()
    for number, (said, text) in enumerate(product(BYTES.values(), TEXTS)):
        (home / "exports" / f"{number}.bin").write_bytes(said(text))
    assert verify(case).hits == expected | {"files:exports": len(BYTES) * len(TEXTS)}


def test_an_agents_key_names_the_agent_alone(person: EndUser) -> None:
    """An agent that the person spoke with is the application's; an id of theirs that was left in a key is found."""
    agent = "otter-concierge-42"
    person.sessions.update(agent_id=agent)
    factories.api_key(person.tenant, binding=Binding(agent_id=agent))
    key, _ = factories.api_key(person.tenant, binding=Binding(user_id=NAME))
    row = factories.privacy_case(person, state="verifying", needles=search_terms.collect(person))
    person.delete()
    row.refresh_from_db()
    assert verify(row).hits == {"memories.APIKey.user_id": 1}
    key.delete()
    assert verify(row).hits == {}
