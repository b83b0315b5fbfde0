// Compiled, not run: paths, bodies and answers are those of the hub's document.
import { createMemoryHub, dataOf, MemoryHubError, rowsOf } from "memoryhub-client";
import { HubMemory } from "memoryhub-client/agents";

const hub = createMemoryHub({ baseUrl: "http://127.0.0.1:8000", apiKey: "mh_" });

export async function remembered(): Promise<string> {
  const messages = [{ role: "user" as const, content: "I moved to Leiden." }];
  await dataOf(hub.POST("/api/v1/turns", { body: { user_id: "u1", session_id: "s1", messages } }));
  // @ts-expect-error: a session is needed
  await hub.POST("/api/v1/turns", { body: { user_id: "u1", messages } });
  // @ts-expect-error: no such path
  await hub.GET("/api/v1/memories");
  const context = await dataOf(hub.POST("/api/v1/context", { body: { user_id: "u1" } }));
  for await (const fact of rowsOf(hub, "/api/v1/facts", { params: { query: { user_id: "u1" } } })) {
    const content: string = fact.content;
    // @ts-expect-error: facts have no such field
    console.log(content, fact.text);
  }
  // @ts-expect-error: a context has no pages
  rowsOf(hub, "/api/v1/context");
  return context.memory ?? "";
}

export const where = (error: MemoryHubError): string[] => error.problem?.errors.map((fault) => fault.pointer) ?? [];

const memory = new HubMemory({ hub, maxTokens: 500 });
memory.middleware({ userId: "u1", sessionId: "s1", author: "model" });
// @ts-expect-error: a conversation is needed
memory.processor({ userId: "u1" });
