// A conversation of three messages and a tool, and what the hub has of it. MEMORYHUB_URL, MEMORYHUB_API_KEY: a hub.
import { createMemoryHub, dataOf, rowsOf } from "memoryhub-client";

const { MEMORYHUB_URL: baseUrl, MEMORYHUB_API_KEY: apiKey } = process.env;
export const hub = createMemoryHub({ baseUrl, apiKey });
export const TALK = ["Where do I live?", "What is the weather there?", "Thanks, I like tea."];
export const STORED = [
  ["user", "person", TALK[0]],
  ["assistant", "model", "Answer 1."],
  ["user", "person", TALK[1]],
  ["assistant", "model", ""],
  ["tool", "application", "Leiden: sunny"],
  ["assistant", "model", "Answer 3."],
  ["user", "person", TALK[2]],
  ["assistant", "model", "Answer 4."],
];

/** Somebody of whom something always stands, and something is brought up by the first message. */
export async function somebody() {
  const user_id = `js-${crypto.randomUUID()}`;
  await dataOf(hub.POST("/api/v1/facts", { body: { user_id, content: "Allergic to peanuts", category: "constraint" } }));
  const messages = [{ role: "user", content: "I moved to Leiden." }];
  await dataOf(hub.POST("/api/v1/turns", { body: { user_id, session_id: "s0", messages } }));
  return user_id;
}

export async function stored(user_id, session_id) {
  const found = [];
  for await (const { id } of rowsOf(hub, "/api/v1/sessions", { params: { query: { user_id, session_id } } })) {
    const path = { session_id: id };
    for await (const turn of rowsOf(hub, "/api/v1/sessions/{session_id}/turns", { params: { path } })) found.push(turn);
  }
  return found.toSorted((a, b) => a.number - b.number).map(({ role, author, content }) => [role, author, content]);
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** What a mock of a model does: it asks for the weather once it is mentioned, and keeps what it was asked. */
export function scripted(simulateReadableStream) {
  const asked = [];
  const answer = (prompt) => {
    asked.push(prompt);
    const last = prompt.at(-1);
    if (last.role === "user" && last.content.at(-1).text.includes("weather")) {
      return { type: "tool-call", toolCallId: "c1", toolName: "weather", input: '{ "city": "Leiden" }' };
    }
    return { type: "text", text: `Answer ${asked.length}.` };
  };
  const reason = ({ type }) => (type === "text" ? "stop" : "tool-calls");
  return {
    asked,
    doGenerate: async ({ prompt }) => {
      const part = answer(prompt);
      return { content: [part], finishReason: { unified: reason(part), raw: "x" }, usage, warnings: [] };
    },
    doStream: async ({ prompt }) => {
      const part = answer(prompt);
      const deltas = [part.text?.slice(0, 3), part.text?.slice(3)].map((delta) => ({ type: "text-delta", id: "t", delta }));
      const said = part.type === "text" ? [{ type: "text-start", id: "t" }, ...deltas, { type: "text-end", id: "t" }] : [part];
      const finish = { type: "finish", finishReason: { unified: reason(part), raw: "x" }, usage };
      return { stream: simulateReadableStream({ chunks: [{ type: "stream-start", warnings: [] }, ...said, finish] }) };
    },
  };
}
