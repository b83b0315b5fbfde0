// The AI SDK itself, with a mock of a model.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { z } from "zod";
import { HubMemory } from "memoryhub-client/agents";
import { hub, scripted, somebody, stored, STORED, TALK } from "./talk.mjs";

const weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: sunny`,
});
const WAYS = {
  generated: async (given) => (await generateText(given)).response.messages,
  streamed: async (given) => {
    const told = streamText(given);
    await told.consumeStream();
    return (await told.response).messages;
  },
};

for (const [way, say] of Object.entries(WAYS)) {
  test(`a conversation, ${way}, is stored once, and each prompt begins with the one before`, async () => {
    const userId = await somebody();
    const memory = new HubMemory({ hub });
    const mock = scripted(simulateReadableStream);
    const messages = [];
    for (const text of TALK) {
      messages.push({ role: "user", content: text });
      const middleware = memory.middleware({ userId, sessionId: "s1" });
      const model = wrapLanguageModel({ model: new MockLanguageModelV4(mock), middleware });
      messages.push(...(await say({ model, instructions: "Be brief.", messages, tools: { weather }, stopWhen: stepCountIs(3) })));
    }
    assert.deepEqual(await stored(userId, "s1"), STORED);
    const { asked } = mock;
    assert.deepEqual(asked[1].slice(0, asked[0].length), asked[0]);
    assert.deepEqual(asked[2].slice(0, asked[1].length), asked[1]);
    assert.deepEqual(asked[3].slice(0, asked[1].length), asked[1]);
    assert.deepEqual(asked[0][0], { role: "system", content: "Be brief." });
    assert.match(asked[0][1].content, /peanuts/);
    assert.match(asked[0][2].content[0].text, /Leiden/);
    assert.doesNotMatch(JSON.stringify(messages), /memory>/);
  });
}
