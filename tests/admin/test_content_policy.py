"""The page of a tenant's content policy: categories in forms, versions, a dry run, and the deletion with its undo."""

import re
from typing import Any

from django.test import Client
from django.utils import timezone

from memories import tasks
from memories.models import ContentPolicy, Fact, Operator, PolicyDrop, PolicyTrial, Tenant
from tests import factories
from tests.factories import NOW


def address(tenant: Tenant) -> str:
    return f"/admin/memories/tenant/{tenant.pk}/content-policy/"


def send(client: Client, tenant: Tenant, act: str, **given: Any) -> Any:
    return client.post(address(tenant), {"act": act, **given}, follow=True)


def policy(tenant: Tenant) -> ContentPolicy:
    tenant.refresh_from_db()
    return ContentPolicy.objects.get(tenant=tenant, version=tenant.policy_version)


def test_categories_are_added_changed_removed_and_restored(admin: Client, tenant: Tenant) -> None:
    assert "There is no policy yet." in admin.get(address(tenant)).content.decode()
    send(admin, tenant, "topic", topic="health")
    assert "diabetes" in policy(tenant).categories[0]["words"]
    new = {"name": "棋牌", "words": "打麻将\n打扑克\n", "not_allowed": "", "allowed": "下围棋", "version": 1}
    page = send(admin, tenant, "save", **new).content.decode()
    assert "Version 2 is in force" in page
    assert re.search(r"<bdi>[\w.-]+</bdi></span>\s*<span>\+ ", page), "who made a version is named"
    assert policy(tenant).categories[1]["words"] == ["打麻将", "打扑克"]
    assert "打扑克" in page
    changed = send(admin, tenant, "save", **{**new, "place": 1, "description": "牌", "version": 1})
    assert (changed.status_code, "牌</textarea>" in changed.content.decode()) == (412, True)
    send(admin, tenant, "save", **{**new, "place": 1, "description": "牌", "version": 2})
    assert policy(tenant).changes == {"added": [], "changed": ["棋牌"], "removed": []}
    send(admin, tenant, "remove", name="health", version=3)
    assert [one["name"] for one in policy(tenant).categories] == ["棋牌"]
    send(admin, tenant, "restore", restored=1)
    assert ([one["name"] for one in policy(tenant).categories], policy(tenant).restored) == (["health"], 1)
    wrong = send(admin, tenant, "save", name="Health", words="", version=5)
    assert (wrong.status_code, "Another category has this name." in wrong.content.decode()) == (400, True)
    assert send(admin, tenant, "anything").status_code == 400


def test_the_hubs_topics_are_named_in_the_language_of_who_reads(admin: Client, tenant: Tenant) -> None:
    Operator.objects.update(language="zh-hans")
    send(admin, tenant, "topic", topic="health")
    send(admin, tenant, "save", name="政治", words="", version=1)
    page = admin.get(address(tenant)).content.decode()
    assert "<strong>健康</strong>" in page
    assert '<button type="submit" name="topic" value="religion" class="hub-button">宗教</button>' in page
    # Stored it has one name, whoever adds it; under a name of their own language a topic is not offered again.
    assert [one["name"] for one in policy(tenant).categories] == ["health", "政治"]
    offered = re.findall(r'name="topic" value="(\w+)"', page)
    assert (offered[0], {"health", "politics"} & set(offered)) == ("minors", set())


def test_a_dry_run_is_shown_and_what_it_found_deleted_and_put_back(admin: Client, tenant: Tenant) -> None:
    fact = factories.fact(factories.end_user(tenant), "Has asthma")
    send(admin, tenant, "try", name="health", words="asthma", version=0)
    assert not ContentPolicy.objects.exists()
    assert "<progress" in admin.get(address(tenant)).content.decode()
    while not tasks.try_policies():
        """Slice by slice."""
    shown = admin.get(address(tenant)).content.decode()
    assert f"/admin/memories/fact/{fact.pk}/change/" in shown
    assert "Delete 1 memory" in shown
    assert "asthma" not in shown
    trial = PolicyTrial.objects.get()
    send(admin, tenant, "delete", trial=trial.pk)
    while not tasks.try_policies():
        """Slice by slice."""
    assert Fact.objects.get().status == "trashed"
    assert "1 memory was moved to the trash." in admin.get(address(tenant)).content.decode()
    send(admin, tenant, "undo", trial=trial.pk)
    assert Fact.objects.get().status == "active"


def test_the_log_counts_by_category_and_road(admin: Client, tenant: Tenant) -> None:
    row = {"tenant": tenant, "day": NOW.date(), "version": 1, "category": "health", "road": "diary"}
    PolicyDrop.objects.create(**row, count=7, last_at=timezone.now())
    assert "<strong>7</strong> health · Diary" in admin.get(address(tenant)).content.decode()
