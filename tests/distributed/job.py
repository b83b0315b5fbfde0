"""The main job: what a person says becomes a memory, is served and corrected."""

import json

from tests.distributed.hub import Hub, check, wait_until

SAID = {"role": "user", "content": "Please remember that I am allergic to peanuts."}


def main_job(hub: Hub, key: str) -> None:
    """What a person says becomes a memory, is served and corrected."""
    posted = hub.call(key, "POST", "/turns", {"user_id": "u1", "session_id": "s1", "messages": [SAID], "flush": True})
    check("POST /turns is accepted", posted.status in (200, 201, 202), posted.status)
    facts = wait_until(lambda: hub.call(key, "GET", "/facts?user_id=u1").body["results"])
    check("rules extract a fact", "peanuts" in facts[0]["content"], facts[0]["content"])
    context = hub.call(key, "POST", "/context", {"user_id": "u1", "query": "What must I not eat?"})
    check("POST /context serves it", "peanuts" in json.dumps(context.body))
    hits = wait_until(lambda: hub.call(key, "POST", "/search", {"user_id": "u1", "query": "peanuts"}).body["results"])
    check("POST /search finds it", "peanuts" in json.dumps(hits))
    address = f"/facts/{facts[0]['id']}"
    once = {"If-Match": '"1"', "Idempotency-Key": "first-correction"}
    changed = hub.call(key, "PATCH", address, {"content": "Is allergic to walnuts."}, **once)
    check("PATCH /facts corrects it", changed.status == 200, changed.status)
    context = hub.call(key, "POST", "/context", {"user_id": "u1"})
    check("the correction is served", "walnuts" in json.dumps(context.body))
    check("check_memory finds nothing wrong", sound := hub.manage("check_memory").strip(), sound)
