// A thin client: openapi-fetch over the hub's OpenAPI document, with keys against doubles, retries and pages.
import createClient from "openapi-fetch";

const WITHOUT_KEY = new Set(["/api/v1/context", "/api/v1/search"]);
const RETRIED = new Set([429, 503]);

/** What the hub refused: its problem document, or the transport's words. */
export class MemoryHubError extends Error {
  constructor(status, problem, requestId) {
    super(problem?.detail || problem?.title || `The hub answered ${status}.`);
    this.name = "MemoryHubError";
    this.status = status;
    this.problem = problem;
    this.requestId = requestId;
  }
}

export function createMemoryHub({
  baseUrl,
  apiKey,
  retries = 3,
  longestWait = 30,
  timeout = 30,
  fetch: transport = globalThis.fetch,
  headers = {},
}) {
  const hub = createClient({
    baseUrl: baseUrl.replace(/\/+$/, ""),
    headers: { ...headers, Authorization: `Bearer ${apiKey}` },
    fetch: (request) => answered(request, { transport, retries, longestWait, timeout }),
  });
  hub.use({
    onRequest({ request, schemaPath }) {
      // The same key in each attempt: what the hub has done already is not done again.
      if (request.method === "POST" && !WITHOUT_KEY.has(schemaPath) && !request.headers.has("Idempotency-Key")) {
        request.headers.set("Idempotency-Key", crypto.randomUUID());
      }
      return request;
    },
  });
  return hub;
}

/** The data of an answer. Throws MemoryHubError if the hub refused the request. */
export async function dataOf(answer) {
  const { data, error, response } = await answer;
  if (!response.ok) throw new MemoryHubError(response.status, error, response.headers.get("X-Request-ID"));
  return data;
}

/** A link with which a person opens the page of their own memory, once. Throws MemoryHubError. */
export function personLink(hub, body) {
  return dataOf(hub.POST("/api/v1/person-links", { body }));
}

/** The rows of a list, page by page. Throws MemoryHubError. */
export async function* rowsOf(hub, path, init = {}) {
  let cursor;
  do {
    const params = { ...init.params, query: { ...init.params?.query, ...(cursor && { cursor }) } };
    const page = await dataOf(hub.GET(path, { ...init, params }));
    yield* page.results;
    cursor = page.next && new URL(page.next).searchParams.get("cursor");
  } while (cursor);
}

/** Send a request until it is answered by other than "too many" or "not now", `retries` times more at most. */
async function answered(request, { transport, retries, longestWait, timeout }) {
  for (let attempt = 0; ; attempt++) {
    const ends = AbortSignal.timeout(timeout * 1000);
    const signal = AbortSignal.any([request.signal, ends]);
    let response;
    try {
      response = await transport(new Request(request.clone(), { signal }));
    } catch (error) {
      // Whether the hub did it is unknown: only what may be done twice is sent again.
      if (request.signal.aborted || attempt >= retries || !mayBeSentTwice(request)) throw error;
    }
    const wait = response ? secondsToWait(response, attempt) : backoff(attempt);
    if (response && (!RETRIED.has(response.status) || attempt >= retries || wait > longestWait)) return response;
    await response?.body?.cancel();
    await pause(wait, request.signal);
  }
}

function mayBeSentTwice(request) {
  return request.method !== "PATCH" && (request.method !== "POST" || request.headers.has("Idempotency-Key"));
}

function secondsToWait(response, attempt) {
  const given = response.headers.get("Retry-After");
  if (!given) return backoff(attempt);
  const seconds = /^\d+$/.test(given) ? Number(given) : (Date.parse(given) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : backoff(attempt);
}

/** Up to 0.5, 1, 2 … seconds: clients that failed together do not come again together. */
function backoff(attempt) {
  return Math.random() * 0.5 * 2 ** attempt;
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}
