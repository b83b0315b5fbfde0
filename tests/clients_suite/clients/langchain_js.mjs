// An agent with a tool, whose conversation is replaced by a summary.
import { ChatOpenAI } from "@langchain/openai";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent, summarizationMiddleware, tool } from "langchain";
import { z } from "zod";
import { CONVERSATIONS, headers, KEY, MODEL, texts, URL } from "./talk.mjs";

const model = (session, said) =>
  new ChatOpenAI({ model: MODEL, apiKey: KEY, configuration: { baseURL: URL, defaultHeaders: headers(session, said) } });
const weather = tool(async ({ city }) => `${city}: sunny`, {
  name: "weather",
  description: "The weather in a city.",
  schema: z.object({ city: z.string() }),
});
for (const [number, conversation] of CONVERSATIONS.entries()) {
  const summary = summarizationMiddleware({ model: model(number, "none"), trigger: { messages: 6 }, keep: { messages: 2 } });
  const agent = createAgent({
    model: model(number, "last"),
    tools: [weather],
    systemPrompt: "Be brief.",
    middleware: [summary],
    checkpointer: new MemorySaver(),
  });
  for await (const text of texts(conversation)) {
    await agent.invoke({ messages: [{ role: "user", content: text }] }, { configurable: { thread_id: String(number) } });
  }
}
