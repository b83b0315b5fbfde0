// A conversation by hand with a tool, streamed.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { CONVERSATIONS, headers, KEY, MODEL, texts, URL } from "./talk.mjs";

const weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: sunny`,
});
for (const [number, conversation] of CONVERSATIONS.entries()) {
  const suite = createOpenAICompatible({ name: "suite", baseURL: URL, apiKey: KEY, headers: headers(number) });
  const messages = [];
  for await (const text of texts(conversation)) {
    messages.push({ role: "user", content: text });
    const told = streamText({ model: suite(MODEL), system: "Be brief.", messages, tools: { weather }, stopWhen: stepCountIs(3) });
    await told.consumeStream();
    messages.push(...(await told.response).messages);
  }
}
