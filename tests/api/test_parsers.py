"""Strict JSON, by itself."""

import json

import pytest

from memories.api.parsers import MAX_DEPTH, decode
from memories.exceptions import InvalidInput

GOOD = [
    (b"{}", {}),
    (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ('{"名": "花生 👩‍👩‍👧"}'.encode(), {"名": "花生 👩‍👩‍👧"}),
    (b'{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    (b'{"a": "\\\\u0000 \\\\ud800"}', {"a": "\\u0000 \\ud800"}),
    (b'{"a": 9223372036854775807}', {"a": 2**63 - 1}),
    (b'{"a": -9223372036854775807}', {"a": 1 - 2**63}),
    (b'{"a": 1e308}', {"a": 1e308}),
    (b'{"a": 1e-400}', {"a": 0.0}),
]


@pytest.mark.parametrize(("body", "expected"), GOOD)
def test_reads_json(body: bytes, expected: object) -> None:
    assert decode(body) == expected


def nested(levels: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return b'{"a":' + opening * levels + b"1" + closing * levels + b"}"


BAD = [
    (b"", "", "syntax"),
    (b"{", "", "syntax"),
    (b"{'a': 1}", "", "syntax"),
    (b'{"a": 1} {}', "", "syntax"),
    (b'{"a": "\x00"}', "", "syntax"),
    (b"[]", "", "not_an_object"),
    (b'"x"', "", "not_an_object"),
    (b"null", "", "not_an_object"),
    (b'{"a": "\xff"}', "", "encoding"),
    (b'{"a": "\xed\xa0\x80"}', "", "encoding"),
    ('{"a": 1}'.encode("utf-16"), "", "encoding"),
    (b'{"a": {"b": ["x", "\\u0000"]}}', "/a/b/1", "nul"),
    (b'{"a": {"\\u0000": 1}}', "/a", "nul"),
    (b'{"a": "\\ud800"}', "/a", "surrogate"),
    (b'{"a": ["\\udc00\\ud800"]}', "/a/0", "surrogate"),
    (b'{"\\ud800": 1}', "", "surrogate"),
    (b'{"a/b~c": "\\u0000"}', "/a~1b~0c", "nul"),
    (b'{"a": 1e400}', "", "number"),
    (b'{"a": -1e400}', "", "number"),
    (b'{"a": NaN}', "", "number"),
    (b'{"a": Infinity}', "", "number"),
    (b'{"a": -Infinity}', "", "number"),
    (b'{"a": 9223372036854775808}', "", "number"),
    (b'{"a": -%s}' % (b"9" * 100_000), "", "number"),
    (b'{"a": 1, "a": 2}', "", "duplicate_key"),
    (b'{"b": {"a": 1, "\\u0061": 2}}', "", "duplicate_key"),
    (nested(100_000), "", "depth"),
    (nested(50_000, b'{"a":', b"}"), "", "depth"),
]


@pytest.mark.parametrize(("body", "pointer", "code"), BAD)
def test_refuses_what_cannot_be_held(body: bytes, pointer: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode(body)
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [(pointer, code)]


def test_depth_ends_where_it_says() -> None:
    assert decode(nested(MAX_DEPTH - 1))
    with pytest.raises(InvalidInput) as caught:
        decode(nested(MAX_DEPTH))
    assert caught.value.faults[0].code == "depth"
    assert caught.value.faults[0].pointer.startswith("/a/0/0")


def test_a_large_body_is_read_in_reasonable_time() -> None:
    messages = [{"role": "user", "content": "花生" * 3000, "metadata": {"tags": ["x"] * 100}}] * 500
    assert len(decode(json.dumps({"messages": messages}, ensure_ascii=False).encode())["messages"]) == 500
