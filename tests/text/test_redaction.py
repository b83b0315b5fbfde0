"""Redaction: every secret of the tables is cut, nothing else changes by a byte."""

import json
import random
import re
import time

from memories.text.secrets.redaction import looks_secret, redact_message, redact_parts, redact_text
from tests.each import each
from tests.tables import rows, texts
from tests.text.timing import takes_linear_time

SECRETS = rows("secrets")
HARMLESS = [*texts("harmless"), *texts("harmless_fields")]
MARK = re.compile(r"\[redacted:([a-z_]+)\]")

_RANDOM = random.Random(7)
UPPER, DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
ALNUM = UPPER + UPPER.lower() + DIGITS


def chars(count: int, alphabet: str = ALNUM) -> str:
    """Random characters with a digit, a capital and a small letter among the first, where the alphabet has them."""
    first = "".join(sign for sign in "4xQ" if sign in alphabet)
    return (first + "".join(_RANDOM.choice(alphabet) for _ in range(count)))[:count]


HEX = DIGITS + "abcdef"
B36 = UPPER + DIGITS
URL64 = ALNUM + "-_"
# Put together here: written out, they would set off scanners of repositories.
KEYS = [
    ("openai_key", "sk-" + chars(48)),
    ("openai_key", "sk-" + "proj-" + chars(120, URL64) + "T3"),
    ("openai_key", "sk-" + "svcacct-" + chars(60, URL64) + "A"),
    ("openai_key", "sk-" + chars(32, HEX)),
    ("openai_key", "sk-" + "or-v1-" + chars(64, HEX)),
    ("anthropic_key", "sk-" + "ant-api03-" + chars(93, URL64) + "AA"),
    ("aws_access_key", "AKIA" + chars(16, B36)),
    ("aws_access_key", "ASIA" + chars(16, B36)),
    ("google_key", "AIza" + chars(35, URL64)),
    ("google_key", "GOCSPX-" + chars(28)),
    ("google_key", "ya29." + chars(100, URL64) + "A"),
    ("github_token", "ghp_" + chars(36)),
    ("github_token", "gho_" + chars(36)),
    ("github_token", "github_pat_" + chars(22) + "_" + chars(59)),
    ("gitlab_token", "glpat-" + chars(20)),
    ("slack_token", "xoxb-" + chars(12, DIGITS) + "-" + chars(13, DIGITS) + "-" + chars(24)),
    ("slack_token", "xoxp-" + chars(12, DIGITS) + "-" + chars(32, HEX)),
    ("slack_token", "xapp-1-" + chars(11, B36) + "-" + chars(13, DIGITS) + "-" + chars(64, HEX)),
    ("stripe_key", "sk_" + "live_" + chars(24)),
    ("stripe_key", "rk_" + "live_" + chars(24)),
    ("stripe_key", "sk_" + "test_" + chars(99)),
    ("stripe_key", "whsec_" + chars(32)),
    ("twilio_key", "SK" + chars(32, HEX)),
    ("sendgrid_key", "SG." + chars(22) + "." + chars(43)),
    ("mailgun_key", "key-" + chars(32, HEX)),
    ("mailchimp_key", chars(32, HEX) + "-us12"),
    ("huggingface_token", "hf_" + chars(34)),
    ("model_provider_key", "gsk_" + chars(52)),
    ("model_provider_key", "xai-" + chars(80)),
    ("package_registry_token", "npm_" + chars(36)),
    ("package_registry_token", "pypi-AgE" + chars(120, URL64) + "A"),
    ("package_registry_token", "dckr_pat_" + chars(27)),
    ("memoryhub_key", "mh_" + chars(10, "abcdefghij" + DIGITS) + "_" + chars(43, URL64)),
    ("alibaba_key", "LTAI" + chars(20)),
    ("tencent_key", "AKID" + chars(32)),
    ("volcengine_key", "AKLT" + chars(44)),
    ("baidu_key", "bce-v3/ALTAK-" + chars(21) + "/" + chars(40, HEX)),
    ("telegram_token", "1234567890:AA" + chars(33, URL64)),
    ("cloud_token", "dop_v1_" + chars(64, HEX)),
    ("cloud_token", "hvs." + chars(90) + "A"),
    ("cloud_token", chars(14) + ".atlasv1." + chars(67)),
    ("service_token", "lin_api_" + chars(40)),
    ("service_token", "shpat_" + chars(32, HEX)),
    ("private_key", "AGE-SECRET-KEY-1" + chars(58, B36)),
    ("jwt", "eyJ" + chars(33) + ".eyJ" + chars(70) + "." + chars(43)),
    ("jwt", "eyJ" + chars(60) + "." + chars(80) + "." + chars(16) + "." + chars(90) + "." + chars(22)),
]
AROUND = [
    "{}",
    "use {} for it",
    "我的钥匙{}，别外传",
    '{{"k": "{}"}}',
    "`{}`",
    "<{}>",
    "({})",
    "KEY={}\nNEXT=1",
    "“{}”。",
]

BODY = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + chars(12) for _ in range(12))


def pem(kind: str, body: str = BODY) -> str:
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(SECRETS) + len(KEYS) >= 80
    assert len(HARMLESS) >= 120


def test_announced_secrets_are_cut() -> None:
    for kinds, marked in SECRETS:
        redacted, count = redact_text(re.sub("[⟦⟧]", "", marked))
        assert MARK.findall(redacted) == kinds.split(","), marked
        assert count == len(kinds.split(",")), marked
        # Around the marks nothing changed, but for the quotes that keep bare JSON numbers JSON.
        pieces = re.split("⟦.*?⟧", marked)
        assert [piece.strip('"') for piece in MARK.split(redacted)[::2]] == [piece.strip('"') for piece in pieces]
        assert not [secret for secret in re.findall("⟦(.*?)⟧", marked) if secret in redacted]


@each(("kind", "key"), KEYS)
def test_keys_are_cut_wherever_they_stand(kind: str, key: str) -> None:
    for around in AROUND:
        assert redact_text(around.format(key)) == (around.format(f"[redacted:{kind}]"), 1)


def test_harmless_text_stays_byte_for_byte() -> None:
    assert [text for text in HARMLESS if redact_text(text) != (text, 0)] == []


@each("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY"])
def test_private_keys_are_cut_whole(kind: str) -> None:
    assert redact_text(f"here:\n{pem(kind)}\nthanks") == ("here:\n[redacted:private_key]\nthanks", 1)


def test_private_key_forms() -> None:
    pgp = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n{BODY}\n-----END PGP PRIVATE KEY BLOCK-----"
    assert redact_text(pgp) == ("[redacted:private_key]", 1)
    escaped = json.dumps({"k": pem("PRIVATE KEY")})
    assert json.loads(redact_text(escaped)[0]) == {"k": "[redacted:private_key]"}
    cut_off = "-----BEGIN PRIVATE KEY-----\n" + BODY
    assert redact_text(cut_off + "\nwhy does this fail?") == ("[redacted:private_key]\nwhy does this fail?", 1)
    for shortened in ("MIIE...", "MIIEowIBAAKCAQEA", "b3BlbnNzaC1rZXk=", "\\nMHcCAQEEIB"):
        assert redact_text(pem("EC PRIVATE KEY", shortened)) == ("[redacted:private_key]", 1)
    for words in ("...", "(your key, in base64)", "<PRIVATE_KEY>", "and the last line is"):
        assert redact_text(pem("PRIVATE KEY", words)) == (pem("PRIVATE KEY", words), 0)
    assert redact_text(pem("PUBLIC KEY"))[1] == redact_text(pem("CERTIFICATE"))[1] == 0


def test_the_secret_beside_an_aws_key_goes_too() -> None:
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY3pLz5Kq8Tv"
    text = f"AKIA{chars(16, B36)} / {secret} in eu-west-1"
    assert redact_text(text) == ("[redacted:aws_access_key] / [redacted:aws_secret_key] in eu-west-1", 2)
    sha = "9fceb02d0ae598e95dc970b74767f19372d61af8"
    assert sha in redact_text(f"AKIA{chars(16, B36)} since commit {sha}")[0]


def test_many_in_one_text() -> None:
    text = "\n".join(re.sub("[⟦⟧]", "", marked) for _, marked in SECRETS[:12]) + "\n" + KEYS[0][1]
    redacted, count = redact_text(text)
    assert count == len(MARK.findall(redacted)) >= 13
    for _, marked in SECRETS[:12]:
        for secret in re.findall("⟦(.*?)⟧", marked):
            assert secret not in redacted


def test_twice_changes_nothing_more() -> None:
    pieces = [*(re.sub("[⟦⟧]", "", marked) for _, marked in SECRETS), *(key for _, key in KEYS), *HARMLESS]
    for _ in range(100):
        text = _RANDOM.choice([" ", "\n", "", ", ", "，"]).join(_RANDOM.sample(pieces, 4))
        redacted, _count = redact_text(text)
        assert redact_text(redacted) == (redacted, 0)


def test_surrogates_and_emoji_stay_whole() -> None:
    text = "👩‍💻\ud83d 我的密码是Xk29dk21\udc00🎉é"
    assert redact_text(text) == ("👩‍💻\ud83d 我的密码是[redacted:password]\udc00🎉é", 1)


HOSTILE = [
    "password:", "password=abc ", "password for x to y of ", 'password: "a ', "-----BEGIN PRIVATE KEY-----", "eyJ-",
    "eyJhbGciOiJ9.", "sk-", "sk-proj-", "://a:b", "://", "xoxb-", "AKIAIOSFODNN7EXAMPLE ", "密码", "密码是", "key",
    "pin ", "mnemonic: abc abc abc abc ", "Bearer ", "curl -u ", "12345678:AA", "hunter2 is my ", "hunter22是",
    "a", " ", "password's ", "a密码", "验证码1", "passphrase: aaa bbb ccc ddd ", '"password": "', "[redacted:password]",
    "AKIA/", "token=", '"token":"', "export TOKEN=a1", "\ntoken: ", "?token=a1&", "token: " + "a1" * 130,
    "--api-key a1 ", "a b c api_key: ", "secret=\\\\",
]  # fmt: skip


@each("unit", HOSTILE)
def test_time_is_linear_on_hostile_text(unit: str) -> None:
    assert takes_linear_time(redact_text, unit, 4_000)


def test_a_megabyte_at_once() -> None:
    text = ("我在杭州做数据工程师，平时喜欢徒步。 I forgot my password, the token count is 512.\n" * 20_000)[:1_000_000]
    begun = time.thread_time()
    assert redact_text(text) == (text, 0)
    assert time.thread_time() - begun < 30


def test_message_fields() -> None:
    github = KEYS[11][1]
    redacted = redact_message(
        content="my password is hunter2",
        tool_calls=[
            {"function": {"name": "login", "arguments": '{"user": "bob", "password": "hunter2", "pin": 1234}'}}
        ],
        metadata={"note": f"key {github}", github: 1, "deep": [{"db_password": "Xk29dk21"}], "hide_from_ui": True},
        name="bob",
    )
    assert redacted.content == "my password is [redacted:password]"
    assert redacted.tool_calls is not None
    arguments = json.loads(redacted.tool_calls[0]["function"]["arguments"])
    assert arguments == {"user": "bob", "password": "[redacted:password]", "pin": "[redacted:pin]"}
    assert redacted.metadata == {
        "note": "key [redacted:github_token]",
        "[redacted:github_token]": 1,
        "deep": [{"db_password": "[redacted:password]"}],
        "hide_from_ui": True,
    }
    assert (redacted.name, redacted.parts, redacted.count) == ("bob", None, 6)


@each(
    "metadata",
    [
        {"password": None},
        {"password": ""},
        {"password": True},
        {"password": "required"},
        {"password": {"type": "string", "minLength": 8}},
        {"password": "Enter your password"},
        {"password": "密码"},
        {"token": 512, "tokens": 4096, "max_tokens": 8192, "token_type": "Bearer"},
        {"request_id": "550e8400-e29b-41d4-a716-446655440000", "sha": "9fceb02d0ae598e95dc970b74767f19372d61af8"},
        {"page": {"next_page_token": "CAUQAA"}, "order": "202611038847123", "phone": "+8613800138000"},
        {"pin": "13", "key": "home_city", "secret": False, "score": 0.5},
        {"secret": None, "token": "", "api_key": "<your key>", "client_secret": "required", "apiKey": "string"},
        {"tokenizer": "o200k_base", "token_count": 12, "token_limit": 8192, "pageToken": "a1b2c3d4", "password": 0},
        {"api_key": "${API_KEY}", "authorization": "Bearer <token>", "access_key": "Ctrl+K", "secret": "my-app-tls"},
        {"api_key_id": "ab12cd", "cache_key": "9f86d081884c7d659a2feaa0c55ad015", "public_key": "ab12cd34"},
    ],
)
def test_harmless_metadata_stays(metadata: dict[str, object]) -> None:
    redacted = redact_message(content="hi", metadata=metadata)
    assert (redacted.metadata, redacted.count) == (metadata, 0)


@each(
    ("metadata", "kind"),
    [
        ({"password": "hunter2"}, "password"),
        ({"password": "swordfish"}, "password"),
        ({"password": 12345678}, "password"),
        ({"mysqlPassword": "Xk29dk21"}, "password"),
        ({"apiKey": "a1b2c3d4e5f6g7h8"}, "api_key"),
        ({"client_secret": "a1b2c3d4e5f6g7h8"}, "secret"),
        ({"access_token": "a1b2c3d4e5f6g7h8"}, "token"),
        ({"otp": 482913}, "one_time_code"),
        ({"密码": "hunter2"}, "password"),
        ({"api_key": "deadbeef"}, "api_key"),
        ({"OPENAI_API_KEY": "a1b2"}, "api_key"),
        ({"api-key": 83920175}, "api_key"),
        ({"token": "9f86d081884c7d659a2feaa0c55ad015"}, "token"),
        ({"refreshToken": "550e8400-e29b-41d4-a716-446655440000"}, "token"),
        ({"secret": "topaz"}, "secret"),
        ({"Authorization": "Bearer ab12"}, "authorization"),
        ({"Authorization": "ab12cd"}, "authorization"),
        ({"private_key": "0xdeadbeef"}, "private_key"),
        ({"client_secret": ["cafebabe"]}, "secret"),
        ({"密钥": "cafebabe"}, "api_key"),
        ({"令牌": 83920175}, "token"),
        ({"password": "a1c"}, "password"),
        ({"tags": ["a", {"x": "密码是hunter2"}]}, "password"),
    ],
)
def test_metadata_that_names_its_secret(metadata: dict[str, object], kind: str) -> None:
    redacted = redact_message(content="hi", metadata=metadata)
    assert redacted.count == 1
    assert MARK.findall(json.dumps(redacted.metadata)) == [kind]


@each("value", ["deadbeef" * 60, "a1B2" * 500])
@each("around", ['{{"api_key": "{}", "n": 1}}', "API_KEY={}\nN=1", "token: {}\nn: 1", "?api_key={}&n=1"])
def test_long_values_are_cut_to_their_end(value: str, around: str) -> None:
    redacted, count = redact_text(around.format(value))
    assert count == 1
    assert MARK.sub("{}", redacted) == around.format("{}").replace("{{", "{").replace("}}", "}")


def test_json_with_secrets_stays_json() -> None:
    document = {"a": {"api_key": "deadbeef", "token": 83920175, "n": 1}, "headers": {"Authorization": "Bearer ab12"}}
    for text in (json.dumps(document), json.dumps(document, indent=2)):
        redacted, count = redact_text(text)
        assert count == 3
        found = json.loads(redacted)
        assert found["a"] == {"api_key": "[redacted:api_key]", "token": "[redacted:token]", "n": 1}
        assert found["headers"] == {"Authorization": "Bearer [redacted:authorization]"}


def test_two_keys_that_were_secrets_stay_two() -> None:
    redacted = redact_message(content="hi", metadata={KEYS[11][1]: 1, KEYS[12][1]: 2})
    assert sorted(redacted.metadata.values()) == [1, 2]


def test_parts_are_cut_with_the_content() -> None:
    parts = [
        {"type": "text", "text": "my password is hunter2"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
    ]
    redacted = redact_message(content="my password is hunter2", parts=parts)
    assert redacted.parts == [{"type": "text", "text": "my password is [redacted:password]"}, parts[1]]
    assert redacted.count == 1


def test_a_secret_that_reaches_over_two_parts() -> None:
    parts = [{"type": "text", "text": "my password is"}, {"type": "text", "text": "hunter2"}]
    redacted = redact_message(content="my password is hunter2", parts=parts)
    assert "hunter2" not in json.dumps(redacted.parts)
    assert redacted.parts == [
        {"type": "text", "text": "my password is [redacted:password]"},
        {"type": "text", "text": ""},
    ]


def test_a_secret_over_several_texts_is_marked_where_it_begins() -> None:
    key = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"]
    texts = [
        "Before",
        f"The key: {key[0]}",
        *key[1:],
        "-----END PRIVATE KEY----- and",
        "my password is hunter2",
        "After",
    ]
    assert redact_parts(texts) == [
        "Before", "The key: [redacted:private_key]", "", "", " and", "my password is [redacted:password]", "After"
    ]  # fmt: skip
    assert redact_parts(["", "Nothing here", ""]) == ["", "Nothing here", ""]
    assert redact_parts([]) == []


def test_parts_of_others_are_not_changed_in_place() -> None:
    metadata = {"password": "hunter2"}
    parts = [{"type": "text", "text": "密码是hunter2"}]
    redact_message(content="密码是hunter2", parts=parts, metadata=metadata)
    assert metadata == {"password": "hunter2"}
    assert parts == [{"type": "text", "text": "密码是hunter2"}]


@each(
    "text",
    [key for _, key in KEYS if len(key) < 60 and "AA" not in key]
    + ["a1b2C3d4E5f6G7h8I9j0K1", "550e8400-e29b-41d4-a716-446655440000a"],
)
def test_random_runs_look_secret(text: str) -> None:
    assert looks_secret(f"The user's key is {text}.")


@each(
    "text",
    [
        "Lives in Leiden",
        "喜欢徒步和手冲咖啡，住在杭州，每周五休息",
        "Arbeitet bei der Donaudampfschifffahrtsgesellschaft als Betriebsrat",
        "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz",
        "Maintains AbstractSingletonProxyFactoryBean",
        "Order 202611038847123000012",
        "Reads https://example.com/blog/2026/11/how-we-moved-to-event-streaming",
        "Uses covid-19-vaccination-2021 as a tag",
        "--------------------------------",
        "Born 1990-05-05, phone +49 151 23456789",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
        "short a1B2c3D4",
        "Ticket 550e8400-e29b-41d4-a716-446655440000 is open",
    ],
)
def test_ordinary_text_does_not_look_secret(text: str) -> None:
    assert not looks_secret(text)
