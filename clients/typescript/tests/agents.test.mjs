// The memory of agents against a running hub, without their frameworks: what these ask of it, said by hand. With the
// frameworks themselves `make clients-suite` runs tests/frameworks/.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryHub, dataOf, rowsOf } from "memoryhub-client";
import { asTurns, HubMemory } from "memoryhub-client/agents";

const { MEMORYHUB_URL: baseUrl, MEMORYHUB_API_KEY: apiKey } = process.env;
const hub = createMemoryHub({ baseUrl, apiKey });
const user = (text) => ({ role: "user", content: [{ type: "text", text }] });
const answer = (text) => ({ role: "assistant", content: [{ type: "text", text }] });

async function know() {
  const user_id = `js-${crypto.randomUUID()}`;
  const fact = { user_id, content: "Allergic to peanuts", category: "constraint" };
  await dataOf(hub.POST("/api/v1/facts", { body: fact }));
  const messages = [{ role: "user", content: "I moved to Leiden." }];
  await dataOf(hub.POST("/api/v1/turns", { body: { user_id, session_id: "s0", messages } }));
  return user_id;
}

async function stored(user_id, session_id = "s1") {
  const found = [];
  for await (const { id } of rowsOf(hub, "/api/v1/sessions", { params: { query: { user_id, session_id } } })) {
    const path = { session_id: id };
    for await (const turn of rowsOf(hub, "/api/v1/sessions/{session_id}/turns", { params: { path } })) found.push(turn);
  }
  return found.toSorted((a, b) => a.number - b.number).map(({ role, author, content }) => [role, author, content]);
}

/** A call of the model, by the middleware as the AI SDK asks it. */
async function call(middleware, prompt, content) {
  const params = await middleware.transformParams({ type: "generate", params: { prompt } });
  await middleware.wrapGenerate({ doGenerate: async () => ({ content }), params });
  return params.prompt;
}

test("what is remembered stands in two blocks, and each prompt begins with the one before", async () => {
  const userId = await know();
  const middleware = new HubMemory({ hub }).middleware({ userId, sessionId: "s1" });
  const said = [{ role: "system", content: "Be brief." }, user("Where do I live?")];
  const first = await call(middleware, said, [{ type: "text", text: "In Leiden." }]);
  const next = await call(middleware, [...said, answer("In Leiden."), user("Thanks.")], [{ type: "text", text: "Gladly." }]);
  assert.deepEqual(next.slice(0, first.length), first);
  assert.deepEqual(first.map((one) => one.role), ["system", "system", "user"]);
  assert.match(first[1].content, /peanuts/);
  assert.match(first[2].content[0].text, /Leiden/);
  assert.deepEqual(said[1], user("Where do I live?"));
  const turns = [["user", "person", "Where do I live?"], ["assistant", "model", "In Leiden."]];
  assert.deepEqual(await stored(userId), [...turns, ["user", "person", "Thanks."], ["assistant", "model", "Gladly."]]);
  // Another process posts all of it again, and nothing is stored twice.
  const other = new HubMemory({ hub }).middleware({ userId, sessionId: "s1" });
  await call(other, [...said, answer("In Leiden."), user("Thanks.")], [{ type: "text", text: "Gladly." }]);
  assert.equal((await stored(userId)).length, 4);
});

test("without the hub the model is asked all the same, and what was said is posted later", async () => {
  const userId = await know();
  let away = true;
  const fetching = (request) => (away ? Promise.reject(new TypeError("fetch failed")) : fetch(request));
  const log = [];
  const asked = { hub: createMemoryHub({ baseUrl, apiKey, retries: 0, fetch: fetching }), pause: 0, log: (text) => log.push(text) };
  const middleware = new HubMemory(asked).middleware({ userId, sessionId: "s1", author: "model" });
  const prompt = [user("Look up Leiden.")];
  assert.deepEqual(await call(middleware, prompt, [{ type: "text", text: "Found." }]), prompt);
  assert.ok(log.length >= 1 && !log.join().includes("Leiden"));
  away = false;
  await call(middleware, [...prompt, answer("Found.")], []);
  assert.deepEqual(await stored(userId), [["user", "model", "Look up Leiden."], ["assistant", "model", "Found."]]);
});

test("a message that the hub refuses is left out, and the others are stored", async () => {
  const userId = await know();
  const memory = new HubMemory({ hub, log: () => {} });
  const broken = { role: "tool", content: [{ type: "tool-result", toolCallId: "c", output: { type: "text", value: "x" } }] };
  const bad = { role: "assistant", content: [{ type: "tool-call", toolCallId: "", toolName: "", input: {} }] };
  await call(memory.middleware({ userId, sessionId: "s1" }), [user("One."), bad, broken, user("Two.")], []);
  const roles = (await stored(userId)).filter(([role]) => role === "user");
  assert.deepEqual(roles, [["user", "person", "One."], ["user", "person", "Two."]]);
});

test("of files their kind and address are posted", () => {
  const file = { type: "file", mediaType: "image/png", data: new URL("https://example.org/a.png") };
  const [turn] = asTurns([{ role: "user", content: [{ type: "text", text: "What is it?" }, file] }]);
  assert.deepEqual(turn.content, [{ type: "text", text: "What is it?" }, { type: "image", url: "https://example.org/a.png" }]);
});
