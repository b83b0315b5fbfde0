// Mastra itself, with a mock of a model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { HubMemory } from "memoryhub-client/agents";
import { hub, scripted, somebody, stored, STORED, TALK } from "./talk.mjs";

const weather = createTool({
  id: "weather",
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  outputSchema: z.string(),
  execute: async ({ city }) => `${city}: sunny`,
});

/** Mastra notes when a message came, in options that go to no provider. */
const plain = (prompt) => JSON.parse(JSON.stringify(prompt, (name, value) => (name === "providerOptions" ? undefined : value)));

for (const way of ["generate", "stream"]) {
  test(`a conversation by ${way} is stored once, and each prompt begins with the one before`, async () => {
    const userId = await somebody();
    const memory = new HubMemory({ hub });
    const mock = scripted(simulateReadableStream);
    const processor = memory.processor({ userId, sessionId: "s1" });
    const agent = new Agent({
      id: "cook",
      name: "cook",
      instructions: "Be brief.",
      model: new MockLanguageModelV4(mock),
      tools: { weather },
      inputProcessors: [processor],
    });
    const messages = [];
    for (const text of TALK) {
      messages.push({ role: "user", content: text });
      const told = await agent[way](messages);
      if (way === "stream") await told.consumeStream();
      messages.push(...(await told.response).messages);
    }
    assert.deepEqual(await stored(userId, "s1"), STORED);
    const asked = mock.asked.map(plain);
    assert.deepEqual(asked[1].slice(0, asked[0].length), asked[0]);
    assert.deepEqual(asked[2].slice(0, asked[1].length), asked[1]);
    assert.match(JSON.stringify(asked[0].slice(0, 2)), /Be brief.*peanuts/);
    assert.match(asked[0].at(-1).content[0].text, /Leiden/);
    assert.doesNotMatch(JSON.stringify(messages), /memory>/);
  });
}
