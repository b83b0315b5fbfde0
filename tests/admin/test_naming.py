"""What records are called in headings, titles and on the way to a page, in either language."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.contrib.messages import get_messages
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import translation

from memories.admin.cases.wording import store_name
from memories.admin.site.mentions import mention, with_names
from memories.admin.site.naming import called, kind_named, kind_of, many_of, short_id
from memories.admin.site.wording import reason_of
from memories.forgetting.trash import EXPIRED, FADED
from memories.models import Operator, Tenant, Turn
from memories.privacy import registry
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

NAMES = {
    "enduser": "终端用户 u-1",
    "fact": "事实 “Likes green tea”",
    "episode": "片段 “They talked about tea.”",
    "session": "会话 s-1",
    "extractionrun": "提取运行 u-1, 2026-11-03 09:12",
    "decaypass": "遗忘处理 2026-11-03 09:12",
    "reviewitem": "审核项 “Likes tea”",
    "privacycase": "个人数据删除 · u-1",
}


@pytest.fixture
def records(db: None) -> list[Model]:
    person = factories.end_user(factories.tenant(slug="acme-prod"), external_id="u-1")
    session = factories.session(person, session_id="s-1")
    return [
        person,
        session,
        factories.fact(person, "Likes green tea"),
        factories.episode(session, "They talked about tea."),
        factories.run(session),
        factories.decay_pass(person.tenant),
        factories.review_item(factories.fact(person, "Likes tea", status="pending")),
        case_of(person),
    ]


@pytest.fixture
def chinese(db: None) -> Client:
    return signed_in(factories.operator(language="zh-hans"))


def heading(page: str) -> str:
    """The words of the way to the page, as they are read."""
    inner = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    assert inner
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", inner[1])).split())


def title(page: str) -> str:
    return unescape(page[page.index("<title>") + 7 : page.index("</title>")]).strip()


def test_a_page_in_chinese_calls_its_record_in_chinese(chinese: Client, records: list[Model]) -> None:
    assert {record._meta.model_name for record in records} == set(NAMES)
    for record in records:
        page = text_of(chinese.get(page_of(record)))
        name = NAMES[str(record._meta.model_name)]
        assert heading(page).endswith(f"chevron_right {name}"), record._meta.model_name
        assert title(page).startswith(name)
        assert str(record) not in heading(page) + title(page)
        assert short_id(record) not in heading(page) + title(page)


def test_who_may_not_see_people_reads_no_name(staff_who_may: Callable[..., Client], records: list[Model]) -> None:
    cases, runs = records[7], records[4]
    page = text_of(staff_who_may("view_privacycase", "view_extractionrun").get(page_of(cases)))
    assert heading(page).endswith(f"Erasure · {short_id(cases)}")
    assert "u-1" not in heading(page) + title(page)
    page = text_of(staff_who_may("view_privacycase", "view_extractionrun").get(page_of(runs)))
    assert heading(page).endswith("chevron_right Extraction run 2026-11-03 09:12")


def test_a_confirmation_and_a_message_say_it_in_chinese(chinese: Client, records: list[Model]) -> None:
    session, fact = records[1], records[2]
    assert heading(text_of(chinese.get(page_of(session, "delete")))).endswith("会话 s-1")
    done = chinese.post(page_of(fact, "pin"), {"version": 1}, follow=True)
    assert "事实 “Likes green tea” 已" in text_of(done)


def test_a_message_has_a_name_only_where_it_is_shown(admin: Client, records: list[Model]) -> None:
    """It waits in a cookie or in the session, which no erasure of a person would find."""
    fact = records[2]
    done = admin.post(page_of(fact, "pin"), {"version": 1})
    [kept] = [str(message) for message in get_messages(done.wsgi_request)]
    assert "tea" not in kept
    assert str(fact.pk) in kept
    shown = text_of(admin.get(done.headers["Location"]))
    assert "Fact “Likes green tea” is pinned" in shown
    assert "\u27e6" not in shown


def test_a_message_names_nobody_to_who_may_not_see_them(rf: RequestFactory, records: list[Model]) -> None:
    request = rf.get("/")
    request.user = factories.operator(is_superuser=False)
    marks = " ".join(map(mention, records[:3]))
    assert with_names(marks, request) == "End user Session Fact"
    request.user = factories.operator()
    assert with_names(marks, request) == "End user u-1 Session s-1 Fact “Likes green tea”"
    assert with_names("\u27e6fact:01a201b8-2386-7e1d-b4b8-42d7243c21a1\u27e7 \u27e6nothing:x\u27e7", request) == (
        "Fact \u27e6nothing:x\u27e7"
    )


def test_a_message_of_django_with_a_link_stays_one(admin: Client) -> None:
    """Marks are looked for in text alone: nothing becomes HTML, and HTML stays what it is."""
    tenant = factories.tenant(slug="acme-prod")
    form = admin.get(page_of(tenant)).context["adminform"].form
    given = {name: value for name in form.fields if (value := form[name].value()) not in (None, False)}
    done = admin.post(page_of(tenant), given, follow=True)
    assert done.redirect_chain, done.context["errors"]
    assert f'<a href="{page_of(tenant)}">' in text_of(done)
    assert "&lt;a" not in text_of(done)


def test_a_long_text_of_several_lines_is_a_short_name(admin: Client) -> None:
    fact = factories.fact(factories.end_user(), "Likes\ntea, " + "very much, " * 40)
    name = heading(text_of(admin.get(page_of(fact)))).partition("“")[2]
    assert name.startswith("Likes tea, very much,")
    assert name.endswith("…”")
    assert len(name) < 70


def test_the_same_in_english(admin: Client, records: list[Model]) -> None:
    fact = records[2]
    page = text_of(admin.get(page_of(fact)))
    assert heading(page) == "Facts chevron_right Fact “Likes green tea”"
    assert f'title="{fact.pk}"' in page


def test_what_staff_named_is_read_as_it_is_written(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    named = [tenant, factories.operator(username="administrator"), factories.api_key(tenant)[0]]
    for record in named:
        assert heading(text_of(admin.get(page_of(record)))).endswith(f"chevron_right {record}")


@pytest.mark.parametrize(
    ("name", "words"),
    [("memories_fact_add", "Facts chevron_right Add a fact"), ("memories_privacycase_board", "Privacy cases")],
)
def test_a_page_behind_a_list_says_its_own_title_once(admin: Client, name: str, words: str) -> None:
    factories.tenant()
    assert heading(text_of(admin.get(reverse(f"admin:{name}")))) == words


def test_a_list_is_titled_by_what_it_lists(admin: Client) -> None:
    assert title(text_of(admin.get(list_of(Tenant)))).startswith("Tenants |")


def test_a_short_id_tells_records_of_one_moment_apart(records: list[Model]) -> None:
    assert len({short_id(record) for record in records}) == len(records)
    assert re.fullmatch(r"[0-9a-f]{4}….{6}", short_id(records[0]))


@pytest.mark.django_db
def test_all_that_is_kept_of_a_person_has_words_in_chinese() -> None:
    """A case tells counts of these before somebody approves."""
    stores = list(registry.counts(factories.end_user()))
    assert len(stores) > 10
    with translation.override("zh-hans"):
        assert [store for store in stores if store_name(store).isascii()] == []


def test_a_job_s_reason_is_read_in_chinese_and_a_person_s_as_it_was_written() -> None:
    reasons = {lot.reason for lot in (*EXPIRED, *FADED) if lot.reason}
    assert len(reasons) == 2
    with translation.override("zh-hans"):
        assert not any(reason_of(reason).isascii() for reason in reasons)
        assert reason_of("Active") == "Active"


def test_kinds_have_words_in_chinese() -> None:
    with translation.override("zh-hans"):
        assert [kind_named(name) for name in ("PrivacyCase", "ProfileSection", "APIKey")] == [
            "隐私请求",
            "画像部分",
            "API 密钥",
        ]
        assert (kind_of(Turn), many_of(Turn)) == ("消息", "消息")
    assert kind_named("Unheard") == "Unheard"
    assert called(Operator(username="chen")) == "chen"
