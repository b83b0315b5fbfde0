// The node with n8n's own package of types and parameters, against a running hub: MEMORYHUB_URL, MEMORYHUB_API_KEY.
// n8n's engine is not here: what it hands a node when it runs (parameters, credentials, requests) is made below.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

// As n8n loads nodes.
const require = createRequire(import.meta.url);
const { NodeHelpers } = require("n8n-workflow");
const { MemoryHub } = require("n8n-nodes-memoryhub");
const { MemoryHubApi } = require("n8n-nodes-memoryhub/credentials/MemoryHubApi.credentials.js");

const { MEMORYHUB_URL: baseUrl, MEMORYHUB_API_KEY: apiKey } = process.env;
const node = new MemoryHub();

async function run(parameters, { address = baseUrl, execution = crypto.randomUUID(), json = {} } = {}) {
  const { properties } = node.description;
  const own = { id: "n1", name: "Memory Hub", type: "memoryHub", typeVersion: 1, position: [0, 0], parameters };
  const all = NodeHelpers.getNodeParameters(properties, parameters, true, false, own, node.description);
  const engine = {
    getInputData: () => [{ json }],
    getNode: () => own,
    getExecutionId: () => execution,
    getCredentials: async () => ({ baseUrl: address, apiKey }),
    getNodeParameter: (name, _, fallback) => all[name] ?? fallback,
    helpers: {
      async httpRequestWithAuthentication(_, { url, body, method }) {
        const headers = { "Content-Type": "application/json", Authorization: `Bearer ${apiKey}` };
        const response = await fetch(url, { method, headers, body: JSON.stringify(body) });
        if (!response.ok) throw Object.assign(new Error("refused"), { httpCode: String(response.status) });
        return response.status === 204 ? {} : response.json();
      },
    },
  };
  const [[item]] = await node.execute.call(engine);
  return item.json;
}

test("n8n finds nothing wrong with the description, and shows each operation its own parameters", () => {
  const own = { typeVersion: 1, parameters: {}, name: "x" };
  const shown = (operation) =>
    node.description.properties
      .filter((one) => NodeHelpers.displayParameter({ operation }, one, own, node.description))
      .map((one) => one.name);
  assert.deepEqual(shown("recall"), ["operation", "userId", "sessionId", "message", "options"]);
  assert.deepEqual(shown("store"), ["operation", "userId", "sessionId", "message", "answer", "options"]);
  assert.deepEqual(shown("end"), ["operation", "userId", "sessionId", "options"]);
  const missing = NodeHelpers.getNodeParametersIssues(node.description.properties, { ...own, parameters: { operation: "end", userId: "" } }, node.description);
  assert.deepEqual(Object.keys(missing.parameters), ["userId"]);
  assert.equal(node.description.credentials[0].name, new MemoryHubApi().name);
});

test("three messages are stored once with their authors, and recalled in two blocks", async () => {
  const userId = `n8n-${crypto.randomUUID()}`;
  const talk = { userId, sessionId: "s1" };
  for (const [index, message] of ["I moved to Leiden.", "I like tea.", "Thanks."].entries()) {
    // The same run twice, as n8n tries a failed one again.
    for (const _ of [1, 2]) {
      const { memoryHub, kept } = await run({ ...talk, operation: "store", message, answer: "Noted." }, { execution: `${userId} ${index}`, json: { kept: 1 } });
      assert.equal(memoryHub.turns.length, 2);
      assert.equal(kept, 1);
    }
  }
  const { memoryHub } = await run({ userId, sessionId: "s2", operation: "recall", message: "Where do I live?" });
  assert.match(memoryHub.volatile, /Leiden/);
  assert.equal(memoryHub.away, undefined);
  const response = await fetch(`${baseUrl}/api/v1/sessions?user_id=${userId}`, { headers: { Authorization: `Bearer ${apiKey}` } });
  const [session] = (await response.json()).results;
  const turns = await fetch(`${baseUrl}/api/v1/sessions/${session.id}/turns`, { headers: { Authorization: `Bearer ${apiKey}` } });
  const { results } = await turns.json();
  assert.deepEqual(results.map(({ role, author }) => `${role} ${author}`).sort(), [...Array(3).fill("assistant model"), ...Array(3).fill("user person")]);
  assert.equal((await run({ ...talk, operation: "end" })).memoryHub.ended, true);
});

test("without the hub the workflow goes on, unless it is to stop", async () => {
  const parameters = { userId: "u1", sessionId: "s1", operation: "recall", message: "Hello." };
  const { memoryHub } = await run(parameters, { address: "http://127.0.0.1:9" });
  assert.deepEqual([memoryHub.memory, memoryHub.stable, memoryHub.volatile, Boolean(memoryHub.away)], ["", "", "", true]);
  await assert.rejects(run({ ...parameters, options: { stop: true } }, { address: "http://127.0.0.1:9" }));
  await assert.rejects(run({ ...parameters, userId: "" }), /person is missing/);
});
