// OpenAI's own client through the hub's gateway beside the bare endpoint, answer by answer. The endpoint is here, at
// MEMORYHUB_ENDPOINT_PORT, where the running hub's OPENAI_BASE_URL leads.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { createMemoryHub, dataOf, rowsOf } from "memoryhub-client";
import OpenAI from "openai";

const { MEMORYHUB_URL: hubUrl, MEMORYHUB_API_KEY: apiKey, MEMORYHUB_ENDPOINT_PORT: port } = process.env;
const person = `gateway-${crypto.randomUUID()}`;
const MODEL = "m-test";
const seen = [];
let endpoint;

async function all(rows) {
  const read = [];
  for await (const row of await rows) read.push(row);
  return read;
}

before(async () => {
  endpoint = createServer(async (request, response) => {
    const body = await JSON.parse(await new Response(request).text());
    // The hub's own calls, to extract, are refused.
    if (body.model !== MODEL) return void response.writeHead(400).end("{}");
    seen.push(body);
    answer(body, response);
  }).listen(port, "127.0.0.1");
  await new Promise((resolve) => endpoint.once("listening", resolve));
  const hub = createMemoryHub({ baseUrl: hubUrl, apiKey });
  const said = { user_id: person, session_id: "before", messages: [{ role: "user", content: "I moved to Leiden." }] };
  await dataOf(hub.POST("/api/v1/turns", { body: said }));
});
after(() => endpoint.close());

const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Leiden"}' } };

function answer(body, response) {
  const base = { id: "chatcmpl-1", created: 1, model: MODEL, system_fingerprint: "fp" };
  if (body.user === "too-many") {
    response.writeHead(429, { "content-type": "application/json", "x-ratelimit-remaining-requests": "0", "retry-after": "7" });
    return response.end(JSON.stringify({ error: { message: "Slow down", type: "requests", code: "rate_limit" } }));
  }
  const message = body.tools
    ? { role: "assistant", content: null, tool_calls: [call] }
    : { role: "assistant", content: "In 莱顿 🌷.", refusal: null };
  if (!body.stream) {
    const choices = Array.from({ length: body.n ?? 1 }, (_, index) => ({ index, message, finish_reason: "stop", logprobs: null }));
    response.writeHead(200, { "content-type": "application/json", "x-ratelimit-remaining-requests": "99" });
    return response.end(JSON.stringify({ ...base, object: "chat.completion", choices, usage }));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const deltas = body.tools
    ? [{ role: "assistant", tool_calls: [{ index: 0, ...call }] }]
    : [{ role: "assistant", content: "" }, { content: "In 莱" }, { content: "顿 🌷." }];
  for (const delta of deltas) {
    const choices = [{ index: 0, delta, finish_reason: null }];
    response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices })}\n\n`);
  }
  if (body.stream_options?.include_usage) {
    response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  }
  response.end("data: [DONE]\n\n");
}

const bare = () => new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "sk-test", maxRetries: 0 });
const through = (session) =>
  new OpenAI({
    baseURL: `${hubUrl}/v1`,
    apiKey,
    maxRetries: 0,
    defaultHeaders: { "X-Memory-User": person, ...(session && { "X-Memory-Session": session }) },
  });

/** The answer to a request whose memory was there in time: on a busy machine the gateway may go on without it. */
async function remembering(ask) {
  for (let tries = 0; tries < 50; tries += 1) {
    const answered = await ask();
    if (answered.response.headers.get("x-memory-reason") !== "timeout") return answered;
  }
  return assert.fail("memory was never there in time");
}

/** A message as the person sent it: what is recalled for it stands before its words, or is a part of its own. */
function withoutMemory({ content, ...message }) {
  if (typeof content !== "string") return { ...message, content: content.filter((part) => !part.text?.startsWith("<memory>")) };
  return { ...message, content: content.replace(/^<memory>\n[^]*?\n<\/memory>\n\n/, "") };
}

const words = { role: "user", content: "Where do I live?" };
const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } };
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }];
const REQUESTS = {
  words: { messages: [words] },
  "three answers": { messages: [words], n: 3, logprobs: true },
  tools: { messages: [words], tools },
  "a picture": { messages: [{ role: "user", content: [{ type: "text", text: "What is it?" }, picture] }] },
};

for (const [name, request] of Object.entries(REQUESTS)) {
  test(`${name}: the answer is the endpoint's, and the model was told`, async () => {
    const asked = { model: MODEL, ...request };
    const direct = await bare().chat.completions.create(asked);
    assert.doesNotMatch(JSON.stringify(seen.at(-1)), /Leiden/);
    const { data, response } = await remembering(() => through().chat.completions.create(asked).withResponse());
    assert.deepEqual(data, direct);
    assert.equal(response.headers.get("x-ratelimit-remaining-requests"), "99");
    assert.equal(response.headers.get("x-memory"), "used");
    assert.match(JSON.stringify(seen.at(-1)), /Leiden/);
    assert.deepEqual(withoutMemory(seen.at(-1).messages.at(-1)), request.messages.at(-1));
  });

  test(`${name}, streamed: the same events`, async () => {
    const asked = { model: MODEL, ...request, stream: true, stream_options: { include_usage: true } };
    const events = async (client) => all(await client.chat.completions.create(asked));
    assert.deepEqual(await events(through()), await events(bare()));
  });
}

test("a refusal of the endpoint is the library's own error, with its headers", async () => {
  const asked = { model: MODEL, messages: [words], user: "too-many" };
  const refused = (client) => client.chat.completions.create(asked).then(assert.fail, (error) => error);
  const [one, other] = [await refused(through()), await refused(bare())];
  assert.equal(one.constructor.name, "RateLimitError");
  assert.deepEqual([one.status, one.error, one.code], [other.status, other.error, other.code]);
  assert.equal(one.headers.get("retry-after"), "7");
});

test("each message is a turn once, though each request has all of them", async () => {
  const client = through("talk");
  const messages = [];
  for (const content of ["One.", "Two.", "Three."]) {
    messages.push({ role: "user", content });
    const answered = await client.chat.completions.create({ model: MODEL, messages });
    messages.push({ role: "assistant", content: answered.choices[0].message.content });
  }
  const hub = createMemoryHub({ baseUrl: hubUrl, apiKey });
  const sessions = await all(rowsOf(hub, "/api/v1/sessions", { params: { query: { user_id: person } } }));
  const { id } = sessions.find((session) => session.session_id === "talk");
  const turns = await all(
    rowsOf(hub, "/api/v1/sessions/{session_id}/turns", { params: { path: { session_id: id } } }),
  );
  const told = turns.toSorted((a, b) => a.number - b.number).map((turn) => turn.content);
  assert.deepEqual(told, messages.map((message) => message.content));
});
