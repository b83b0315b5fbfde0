// An agent with a tool and a memory that shows the newest messages, and asks for a title.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { z } from "zod";
import { CONVERSATIONS, headers, KEY, MODEL, texts, URL } from "./talk.mjs";

const model = (session, said) =>
  createOpenAICompatible({ name: "suite", baseURL: URL, apiKey: KEY, headers: headers(session, said) })(MODEL);
const weather = createTool({
  id: "weather",
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  outputSchema: z.string(),
  execute: async ({ city }) => `${city}: sunny`,
});
for (const [number, conversation] of CONVERSATIONS.entries()) {
  const storage = new LibSQLStore({ id: "suite", url: ":memory:" });
  const memory = new Memory({ storage, options: { lastMessages: 3, generateTitle: { model: model(number, "none") } } });
  const agent = new Agent({
    id: "cook",
    name: "cook",
    instructions: "Be brief.",
    model: model(number, "last"),
    tools: { weather },
    memory,
  });
  for await (const text of texts(conversation)) {
    await agent.generate(text, { memory: { thread: `t${number}`, resource: "r1" } });
  }
}
// The title is asked for in the background.
await new Promise((done) => setTimeout(done, 2000));
