// An agent with a tool and a session in memory.
import { Agent, MemorySession, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { CONVERSATIONS, headers, KEY, MODEL, texts, URL } from "./talk.mjs";

setTracingDisabled(true);
const weather = tool({
  name: "weather",
  description: "The weather in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: sunny`,
});
for (const [number, conversation] of CONVERSATIONS.entries()) {
  const client = new OpenAI({ baseURL: URL, apiKey: KEY, defaultHeaders: headers(number) });
  const model = new OpenAIResponsesModel(client, MODEL);
  const agent = new Agent({ name: "cook", instructions: "Be brief.", tools: [weather], model });
  const session = new MemorySession();
  for await (const text of texts(conversation)) await run(agent, text, { session });
}
