import type { Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

export type Problem = components["schemas"]["Problem"];
export type MemoryHub = Client<paths>;

export interface MemoryHubOptions {
  /** Where the hub is, without `/api/v1`: `http://127.0.0.1:8000`. */
  baseUrl: string;
  /** The key, `mh_…`; never in a browser. */
  apiKey: string;
  /** How often a request is sent again after 429, 503 or a lost connection; 3 unless told. */
  retries?: number;
  /** Seconds: where `Retry-After` asks for more, the answer is returned; 30 unless told. */
  longestWait?: number;
  /** Seconds of one attempt; 30 unless told. */
  timeout?: number;
  /** Another `fetch`, for tests or proxies. */
  fetch?: (request: Request) => Promise<Response>;
  headers?: Record<string, string>;
}

/**
 * A client of a hub, with a method per HTTP verb: `hub.POST("/api/v1/turns", { body })`. Paths, parameters, bodies and
 * answers have the types of the hub's OpenAPI document. Every write gets an Idempotency-Key, which stays the same when
 * it is sent again.
 */
export function createMemoryHub(options: MemoryHubOptions): MemoryHub;

/** What the hub refused. */
export class MemoryHubError extends Error {
  constructor(status: number, problem: Problem | undefined, requestId: string | null);
  readonly status: number;
  /** The problem document: `title`, `detail`, and `errors` with the place of each fault. */
  readonly problem: Problem | undefined;
  /** `X-Request-ID`, for the hub's operators. */
  readonly requestId: string | null;
}

/** The data of an answer. Throws MemoryHubError if the hub refused the request. */
export function dataOf<A extends { data?: unknown; response: Response }>(
  answer: Promise<A>,
): Promise<Exclude<A["data"], undefined>>;

/**
 * A link with which a person opens the page of their own memory, once: `(await personLink(hub, { user_id })).url`. Open
 * it at once, where the person is signed in. Throws MemoryHubError.
 */
export function personLink(
  hub: MemoryHub,
  body: components["schemas"]["NewPersonLinkRequest"],
): Promise<components["schemas"]["PersonLink"]>;

/** The paths of lists, which come in pages. */
export type ListPath = {
  [P in keyof paths]: paths[P] extends {
    get: { responses: { 200: { content: { "application/json": { next: unknown; results: unknown[] } } } } };
  }
    ? P
    : never;
}[keyof paths];

type RowOf<P extends ListPath> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": { results: (infer R)[] } } } } };
}
  ? R
  : never;

type ParametersOf<P extends ListPath> = paths[P] extends { get: { parameters: infer G } } ? G : never;

/** The rows of a list, which are asked for page by page. Throws MemoryHubError. */
export function rowsOf<P extends ListPath>(
  hub: MemoryHub,
  path: P,
  init?: { params?: Partial<Pick<ParametersOf<P>, keyof ParametersOf<P> & ("query" | "path")>> },
): AsyncGenerator<RowOf<P>, void, undefined>;
