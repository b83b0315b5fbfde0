import type { MemoryHub } from "./index.js";

export interface HubMemoryOptions {
  /** A client; by default one of MEMORYHUB_URL and MEMORYHUB_KEY that waits 5 seconds. The key needs `ingest` and `read`. */
  hub?: MemoryHub;
  /** Of a context; 2,000 unless told. */
  maxTokens?: number;
  /** What counts them: the name of your model, or a tokenizer of the hub. */
  tokenizer?: string;
  /** Also tell the model what to remember and what never: for agents that write memories with tools. */
  guidelines?: boolean;
  /** Seconds for which the hub is left alone after it could not be had; 10 unless told. */
  pause?: number;
  /** Where it says that the hub cannot be had; `console.warn` unless told. */
  log?: (text: string) => void;
}

/** Whose memory it is, and of which conversation. */
export interface Who {
  userId: string;
  sessionId: string;
  agentId?: string;
  /** Whose words messages in role user are: "person" unless told; "model" for an agent that another one calls as a tool. */
  author?: "person" | "application" | "model" | "other";
  /** Whether the model is told what is remembered; true unless told. */
  read?: boolean;
  /** Whether what is said is posted; true unless told. */
  write?: boolean;
}

/**
 * What the hub remembers, for models and agents of many conversations: make one for the process. What always stands is
 * behind the system prompt; what a message brings up is before that message, and stays there in later calls. When the
 * hub is away they go on without memory.
 */
export class HubMemory {
  constructor(options?: HubMemoryOptions);
  /** For `wrapLanguageModel` of the AI SDK. */
  middleware(who: Who): {
    specificationVersion: "v4";
    transformParams: (options: any) => Promise<any>;
    wrapGenerate: (options: any) => Promise<any>;
    wrapStream: (options: any) => Promise<any>;
  };
  /** For `inputProcessors` of an agent of Mastra. */
  processor(who: Who): {
    id: "memoryhub";
    name: string;
    processLLMRequest: (args: any) => Promise<any>;
    processLLMResponse: (args: any) => Promise<void>;
  };
  /** The conversation is over: an episode of it comes at once. A new message reopens it. */
  end(who: Pick<Who, "userId" | "sessionId" | "agentId">): Promise<void>;
}

/** What the prompt of a call of the AI SDK or Mastra says, as messages for the hub. */
export function asTurns(prompt: any[], who?: Pick<Who, "author">): { role: string; content: unknown; author?: string }[];
