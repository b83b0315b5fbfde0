// Against a running hub: MEMORYHUB_URL, and in MEMORYHUB_API_KEY a key with all scopes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryHub, dataOf, MemoryHubError, rowsOf } from "memoryhub-client";

const { MEMORYHUB_URL: baseUrl, MEMORYHUB_API_KEY: apiKey } = process.env;
const person = `js-${crypto.randomUUID()}`;
const body = (content) => ({ user_id: person, session_id: "s1", messages: [{ role: "user", content }] });

/** A client whose n-th attempt gets the n-th of these answers before the hub itself is asked; and what was sent. */
function behind(...answers) {
  const sent = [];
  const hub = createMemoryHub({
    baseUrl,
    apiKey,
    fetch: async (request) => {
      sent.push(request.clone());
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer ?? fetch(request);
    },
  });
  return { hub, sent };
}
const busy = (status, wait) => new Response("{}", { status, headers: { "Retry-After": wait } });

test("what was said is in the context", async () => {
  const { hub } = behind();
  const receipt = await dataOf(hub.POST("/api/v1/turns", { body: body("我下周搬到莱顿。 I moved to Leiden.") }));
  assert.equal(receipt.turns.length, 1);
  const context = await dataOf(hub.POST("/api/v1/context", { body: { user_id: person, query: "Leiden?" } }));
  assert.match(context.memory, /莱顿/);
});

test("rows come page by page, each once", async () => {
  const { hub, sent } = behind();
  for (const content of ["Has a dog.", "Likes tea.", "Plays chess."]) {
    await dataOf(hub.POST("/api/v1/facts", { body: { user_id: person, content, category: "preference" } }));
  }
  const rows = [];
  const query = { user_id: person, page_size: 2 };
  for await (const fact of rowsOf(hub, "/api/v1/facts", { params: { query } })) rows.push(fact.content);
  assert.deepEqual(rows.toSorted(), ["Has a dog.", "Likes tea.", "Plays chess."]);
  assert.equal(sent.filter((request) => request.method === "GET").length, 2);
});

test("what the hub refuses is an error with its problem", async () => {
  const { hub } = behind();
  await assert.rejects(dataOf(hub.POST("/api/v1/turns", { body: { ...body("x"), user_id: "" } })), (error) => {
    assert.ok(error instanceof MemoryHubError);
    assert.equal(error.status, 400);
    assert.ok(error.problem.errors.length >= 1);
    assert.equal(error.requestId, error.problem.request_id);
    return true;
  });
  const { error } = await hub.GET("/api/v1/facts", { params: { query: { user_id: person, page_size: 0 } } });
  assert.equal(error.status, 400);
});

test("after 429, 503 and a lost connection a write is sent again under one key, and stored once", async () => {
  const { hub, sent } = behind(busy(429, "0"), busy(503, "0"), new TypeError("fetch failed"));
  const answer = await hub.POST("/api/v1/turns", { body: body("Once.") });
  assert.equal(answer.response.status, 202);
  assert.equal(sent.length, 4);
  const keys = new Set(sent.map((request) => request.headers.get("Idempotency-Key")));
  assert.equal(keys.size, 1);
  const again = await hub.POST("/api/v1/turns", {
    body: body("Once."),
    headers: { "Idempotency-Key": [...keys][0] },
  });
  assert.equal(again.response.headers.get("Idempotency-Replayed"), "true");
  assert.deepEqual(again.data, answer.data);
});

test("a change is not sent again when the connection was lost, nor anything for longer than was allowed", async () => {
  const lost = behind(new TypeError("fetch failed"));
  const detail = { params: { query: { user_id: person } }, body: { display_name: "J." } };
  await assert.rejects(lost.hub.PATCH("/api/v1/users/detail", detail), TypeError);
  assert.equal(lost.sent.length, 1);
  const later = behind(busy(503, "3600"));
  assert.equal((await later.hub.GET("/api/v1/users")).response.status, 503);
  const always = behind(...Array(9).fill().map(() => busy(429, "0")));
  assert.equal((await always.hub.GET("/api/v1/users")).response.status, 429);
  assert.equal(always.sent.length, 4);
});

test("a caller who leaves ends the wait", async () => {
  const { hub } = behind(busy(429, "20"));
  const leaving = new AbortController();
  const asked = hub.GET("/api/v1/users", { signal: leaving.signal });
  setTimeout(() => leaving.abort(), 10);
  await assert.rejects(asked, { name: "AbortError" });
});
