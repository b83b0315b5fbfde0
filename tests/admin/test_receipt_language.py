"""The page of a receipt is in the language of the operator; the file, which is for the requester, stays English."""

import re

import pytest
from django.test import Client
from django.utils import translation

from memories.privacy import receipts
from memories.privacy.receipt_page import ReceiptPage
from memories.privacy.searching import files
from memories.privacy.verification import SAMPLED_IDS
from tests import factories
from tests.admin.cases import with_receipt
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db


def sentences(client: Client, address: str) -> list[str]:
    """The texts of the receipt's paragraphs, headings and cells."""
    page = text_of(client.get(address))
    card = page[page.index("case-receipt") :]
    card = card[: card.index("</section>")]
    return [text.strip() for text in re.findall(r"<(?:p|h2|th|td)[^>]*>([^<]+)</", card) if text.strip()]


def test_it_is_in_the_language_of_the_operator() -> None:
    case = with_receipt(factories.end_user(), channel="email", told="")
    address = page_of(case, "receipt")
    english = sentences(signed_in(factories.operator(is_superuser=True, language="en")), address)
    chinese = sentences(signed_in(factories.operator(is_superuser=True, language="zh-hans")), address)
    assert "Receipt of an erasure" in english
    assert "删除回执" in chinese
    assert len(english) == len(chinese)
    # What has no Chinese letter is a figure, a moment, an id or a key: the same in both.
    left = [text for text in chinese if not re.search(r"[\u4e00-\u9fff]", text)]
    assert [text for text in left if text not in english] == []
    assert [text for text in left if re.search(r"[a-z]{3,} [a-z]{2,}", text)] == []
    assert len(left) < len(chinese) / 2


def test_what_was_not_searched_is_said_in_it_too() -> None:
    case = with_receipt(factories.end_user())
    skipped = {**files.skipped(), **SAMPLED_IDS, "memories.Turn.content": "A reason that nobody knows"}
    receipt = {**case.receipt, "verified": {**case.receipt["verified"], "tables": 12_345, "skipped": skipped}}
    with translation.override("zh-hans"):
        (search,) = [
            one for one in ReceiptPage.of(receipt, signature="", public_key="").sections if "12,345" in str(one)
        ]
    reasons = [why for _label, why in search.rows[-len(skipped) :]]
    assert [why for why in reasons if why.isascii()] == ["A reason that nobody knows"]


def test_the_signed_file_and_its_page_stay_english() -> None:
    case = with_receipt(factories.end_user())
    client = signed_in(factories.operator(is_superuser=True, language="zh-hans"))
    for name in ("receipt_json", "receipt_html"):
        file = client.get(page_of(case, name)).content.decode()
        assert "Keyed hash" in file
        assert not re.search(r"[\u4e00-\u9fff]", file)
    assert receipts.verify(case.receipt, case.signature)
