// Memory for agents: a middleware for models of the AI SDK, and a processor for agents of Mastra. Both see the prompt of
// a call just before it goes to the model, in one form, and change nothing that is stored.
import { createMemoryHub, dataOf, MemoryHubError } from "./index.js";

const KEPT_TALKS = 512;
// No provider keeps a prompt for longer. What was corrected since is not told longer either.
const KEPT_SECONDS = 3600;
// Of a conversation, and of all of them together, in characters: beyond them the oldest go.
const KEPT_OF_ONE = 400_000;
const KEPT_OF_ALL = 8_000_000;
const LONGEST_QUERY = 20_000;
const LONGEST_TEXT = 500_000;
const LONGEST_ID = 255;
const MOST_MESSAGES = 100;
const INCLUDE = ["profile", "facts", "groups", "episodes", "turns", "working_memory"];
// Refusals that may be for what a message is, and those by which nothing of the person may be stored.
const OF_A_MESSAGE = new Set([400, 409, 413]);
const MAY_NOT_BE_STORED = new Set([410, 423]);

export class HubMemory {
  #hub;
  #asked;
  #pause;
  #log;
  #pausedUntil = 0;
  #talks = new Map();
  #posted = new Map();

  constructor({ hub, maxTokens = 2000, tokenizer, guidelines, pause = 10, log = console.warn } = {}) {
    this.#hub = hub ?? hubOfEnvironment();
    // Left out rather than false or null: hubs from before do not know these.
    this.#asked = { max_tokens: maxTokens, ...(tokenizer && { tokenizer }), ...(guidelines && { guidelines: true }) };
    this.#pause = pause;
    this.#log = log;
  }

  middleware(who) {
    const told = new WeakMap();
    return {
      specificationVersion: "v4",
      transformParams: async ({ params }) => {
        const turns = asTurns(params.prompt, who);
        await this.#post(who, turns);
        const prompt = await this.#withMemory(who, params.prompt);
        told.set(prompt, turns);
        return { ...params, prompt };
      },
      wrapGenerate: async ({ doGenerate, params }) => {
        const result = await doGenerate();
        await this.#post(who, [...(told.get(params.prompt) ?? []), ...answered(result.content)], true);
        return result;
      },
      wrapStream: async ({ doStream, params }) => {
        const { stream, ...more } = await doStream();
        const parts = [];
        const watched = new TransformStream({
          transform: (part, controller) => (collect(parts, part), controller.enqueue(part)),
          flush: () => this.#post(who, [...(told.get(params.prompt) ?? []), ...answered(parts)], true),
        });
        return { stream: stream.pipeThrough(watched), ...more };
      },
    };
  }

  processor(who) {
    return {
      id: "memoryhub",
      name: "Memory Hub",
      processLLMRequest: async ({ prompt, state }) => {
        state.turns = asTurns(prompt, who);
        await this.#post(who, state.turns);
        return { prompt: await this.#withMemory(who, prompt) };
      },
      processLLMResponse: async ({ chunks, state }) => {
        const parts = [];
        for (const { type, payload } of chunks) collect(parts, { type, ...payload });
        await this.#post(who, [...(state.turns ?? []), ...answered(parts)], true);
      },
    };
  }

  /** The conversation is over: an episode of it comes at once. */
  async end(who) {
    try {
      await dataOf(this.#hub.POST("/api/v1/sessions/end", { body: names(who) }));
    } catch (error) {
      if (error.status !== 404) this.#failed("The hub was not told that the conversation is over", error);
    }
  }

  // What is remembered

  async #withMemory(who, prompt) {
    if (who.read === false) return prompt;
    const said = prompt.flatMap((message, at) => (message.role === "user" ? [at] : []));
    const marks = await marksOf(said.map((at) => prompt[at].content));
    const talk = await this.#told(names(who), said.length ? textOf(prompt[said.at(-1)].content) : "", marks);
    const found = [...prompt];
    for (const [index, at] of said.entries()) {
      const block = talk.before.get(marks[index]);
      if (block) found[at] = { ...prompt[at], content: [{ type: "text", text: `${block}\n\n` }, ...prompt[at].content] };
    }
    if (!talk.stable) return found;
    // Behind the last of the system messages that the prompt begins with.
    const behind = found.findIndex((message) => message.role !== "system");
    found.splice(behind < 0 ? found.length : behind, 0, { role: "system", content: talk.stable });
    return found;
  }

  /**
   * The stable block stays until its revision changes, and the others where they are as long, so that a provider's cache
   * of the prompt holds. While a tool is at work, or the hub cannot be had, nothing new is asked.
   */
  async #told(named, query, marks) {
    const key = JSON.stringify(named);
    let talk = this.#talks.get(key);
    this.#talks.delete(key);
    if (!talk || seconds() - talk.began > KEPT_SECONDS) talk = { stable: "", revision: "", before: new Map(), began: seconds() };
    talk.before = new Map(marks.flatMap((mark) => (talk.before.has(mark) ? [[mark, talk.before.get(mark)]] : [])));
    this.#talks.set(key, talk);
    if (marks.length && !talk.before.has(marks.at(-1)) && this.#mayAsk()) await this.#ask(talk, named, query, marks.at(-1));
    this.#keepWithin(talk);
    return talk;
  }

  async #ask(talk, named, query, newest) {
    let context;
    try {
      const body = { ...named, ...this.#asked, include: INCLUDE, blocks: true };
      const asked = query.trim().slice(0, LONGEST_QUERY);
      context = await dataOf(this.#hub.POST("/api/v1/context", { body: { ...body, ...(asked && { query: asked }) } }));
    } catch (error) {
      if (MAY_NOT_BE_STORED.has(error.status)) this.#forget(named);
      return this.#failed("The agent goes on without memory", error);
    }
    if (context.restricted || context.serve === false) {
      Object.assign(talk, { stable: "", revision: "", before: new Map([[newest, ""]]) });
      return;
    }
    const revision = `${context.stable?.revision ?? context.revision} ${Boolean(context.guidelines)}`;
    if (revision !== talk.revision) {
      talk.stable = [context.guidelines, context.stable?.memory ?? context.memory].filter(Boolean).join("\n\n");
      // Something in it was corrected or forgotten, and blocks further down may tell it, too.
      if (talk.revision) talk.before = new Map();
      talk.revision = revision;
    }
    talk.before.set(newest, context.volatile?.memory ?? "");
  }

  /** The newest block of the conversation stays, and so does the conversation. */
  #keepWithin(talk) {
    while (sizeOf(talk) > KEPT_OF_ONE && talk.before.size > 1) talk.before.delete(talk.before.keys().next().value);
    const all = () => [...this.#talks.values()].reduce((sum, one) => sum + sizeOf(one), 0);
    while (this.#talks.size > 1 && (this.#talks.size > KEPT_TALKS || all() > KEPT_OF_ALL)) {
      this.#talks.delete(this.#talks.keys().next().value);
    }
  }

  #forget(named) {
    for (const key of [...this.#talks.keys()]) {
      if (JSON.parse(key).user_id === named.user_id) this.#talks.delete(key);
    }
  }

  // What was said

  /** Of a conversation as it stands, post what was not posted yet. It never throws. */
  async #post(who, turns, last = false) {
    if (who.write === false || !(last || this.#mayAsk())) return;
    const named = names(who);
    const key = JSON.stringify(named);
    const messages = await identified(turns);
    const posted = this.#posted.get(key) ?? new Set();
    const waiting = messages.filter((message) => !posted.has(message.external_id));
    try {
      for (let at = 0; at < waiting.length; at += MOST_MESSAGES) {
        const some = waiting.slice(at, at + MOST_MESSAGES);
        await this.#store(named, some);
        for (const message of some) posted.add(message.external_id);
      }
    } catch (error) {
      if (MAY_NOT_BE_STORED.has(error.status)) {
        this.#forget(named);
        for (const message of waiting) posted.add(message.external_id);
        this.#log(`Nothing is remembered of this conversation: ${wordOf(error)}`);
      } else {
        this.#failed("The hub did not take the messages, which are posted at the next chance", error);
      }
    }
    // What the conversation has no more is not kept: of a long one the prompt may have the end alone.
    const there = new Set(messages.map((message) => message.external_id));
    this.#posted.delete(key);
    this.#posted.set(key, new Set([...posted].filter((id) => there.has(id))));
    if (this.#posted.size > KEPT_TALKS) this.#posted.delete(this.#posted.keys().next().value);
  }

  /** Store them; of those that the hub refuses for what they are, the others. */
  async #store(named, messages) {
    try {
      await dataOf(this.#hub.POST("/api/v1/turns", { body: { ...named, messages } }));
    } catch (error) {
      if (!isOfAMessage(error)) throw error;
      if (messages.length === 1) return this.#log(`The hub refuses a message, which is left out: ${wordOf(error)}`);
      const half = messages.length >> 1;
      await this.#store(named, messages.slice(0, half));
      await this.#store(named, messages.slice(half));
    }
  }

  #mayAsk() {
    return seconds() >= this.#pausedUntil;
  }

  /** Say so, and leave the hub alone for a while. */
  #failed(what, error) {
    this.#pausedUntil = seconds() + this.#pause;
    this.#log(`${what}: ${wordOf(error)}`);
  }
}

/** What the prompt of a call says, as messages for the hub. Nobody said system prompts and reasoning. */
export function asTurns(prompt, { author = "person" } = {}) {
  return prompt.flatMap((message) => {
    if (message.role === "user") return said(message.content, author);
    if (message.role === "assistant") return answered(message.content);
    if (message.role !== "tool") return [];
    return message.content.flatMap((part) => (part.type === "tool-result" ? [result(part)] : []));
  });
}

function said(content, author) {
  const text = textOf(content).slice(0, LONGEST_TEXT);
  const files = content.filter((part) => part.type === "file").map(fileOf);
  if (!files.length) return text.trim() ? [{ role: "user", content: text, author }] : [];
  return [{ role: "user", content: [...(text.trim() ? [{ type: "text", text }] : []), ...files], author }];
}

/** Of a file its kind and address, not its bytes. */
function fileOf({ mediaType, data }) {
  const address = String(data?.url ?? data ?? "").startsWith("http") ? String(data.url ?? data) : "";
  return { type: String(mediaType ?? "file").split("/")[0], ...(address && { url: address }) };
}

function answered(content) {
  const text = textOf(content).slice(0, LONGEST_TEXT);
  const calls = content.filter((part) => part.type === "tool-call").map(callOf);
  if (!text.trim() && !calls.length) return [];
  return [{ role: "assistant", content: text, ...(calls.length && { tool_calls: calls }) }];
}

function callOf({ toolCallId, toolName, input, args }) {
  const given = input ?? args ?? {};
  const spoken = typeof given === "string" ? respelled(given) : JSON.stringify(given);
  return { id: id(toolCallId), type: "function", function: { name: toolName, arguments: spoken.slice(0, LONGEST_TEXT) } };
}

/** As the prompt of the next call has it. */
function respelled(text) {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
}

function result({ toolCallId, output }) {
  const value = output && typeof output === "object" && "value" in output ? output.value : output;
  const content = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return { role: "tool", content: content.slice(0, LONGEST_TEXT), tool_call_id: id(toolCallId) };
}

/** Pieces of a stream as the parts of one answer. */
function collect(parts, part) {
  if (part.type === "tool-call") parts.push(part);
  if (part.type !== "text-delta") return;
  const text = part.delta ?? part.text ?? "";
  const open = parts.find((one) => one.type === "text" && one.id === part.id);
  if (open) open.text += text;
  else parts.push({ type: "text", id: part.id, text });
}

function textOf(content) {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

function names({ userId, sessionId, agentId }) {
  return { user_id: userId, session_id: sessionId, ...(agentId && { agent_id: agentId }) };
}

/** What stands for each of what the user said, and for all before it. */
async function marksOf(contents) {
  const found = [];
  let before = "";
  for (const content of contents) {
    before = await hashed(before + JSON.stringify(content.map(({ type, text, mediaType }) => [type, text ?? mediaType])));
    found.push(before);
  }
  return found;
}

/** Messages have no ids: each gets one of what it says, and how often that stood before. */
async function identified(turns) {
  const count = new Map();
  const found = [];
  for (const turn of turns) {
    const text = JSON.stringify(turn);
    count.set(text, (count.get(text) ?? 0) + 1);
    found.push({ ...turn, external_id: await hashed(`${count.get(text)} ${text}`) });
  }
  return found;
}

async function hashed(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function isOfAMessage({ status, problem }) {
  if (!OF_A_MESSAGE.has(status)) return false;
  if (status === 409) return problem?.code === "external_id_reused";
  return status === 413 || Boolean(problem?.errors?.length && problem.errors.every((one) => one.pointer.startsWith("/messages")));
}

function hubOfEnvironment() {
  const { MEMORYHUB_URL, MEMORYHUB_KEY } = globalThis.process?.env ?? {};
  if (!MEMORYHUB_KEY) throw new Error("A key of the hub is needed: in MEMORYHUB_KEY, or pass `hub: createMemoryHub(…)`.");
  // An agent does not wait long for its memory.
  const patience = { timeout: 5, retries: 1, longestWait: 1 };
  return createMemoryHub({ baseUrl: MEMORYHUB_URL ?? "http://127.0.0.1:8000", apiKey: MEMORYHUB_KEY, ...patience });
}

/** For a log: nothing of what the request said. */
const wordOf = (error) => (error instanceof MemoryHubError ? `${error.status} ${error.problem?.code ?? ""}` : error.name);
const sizeOf = (talk) => [...talk.before.values()].reduce((sum, block) => sum + block.length, talk.stable.length);
const seconds = () => Date.now() / 1000;
const id = (given) => String(given ?? "").slice(0, LONGEST_ID);
