// For the conversations in JavaScript: where the hub is, and what the person says.
export const URL = process.env.SUITE_URL;
export const KEY = process.env.SUITE_KEY;
export const MODEL = "gpt-4o";
export const CONVERSATIONS = JSON.parse(process.env.SUITE_SAYS);

/** Of requests of one conversation; `said` "none": of those beside it. Without the mode only the person is named. */
export function headers(session, said = "last") {
  const user = process.env.SUITE_USER;
  if (process.env.SUITE_MODE !== "said") return { "X-Memory-User": user };
  return { "X-Memory-User": user, "X-Memory-Session": `${user}-${session}`, "X-Memory-Said": said };
}

/** One after the other, as a person takes time to type. */
export async function* texts(conversation) {
  for (const text of conversation) {
    await new Promise((done) => setTimeout(done, 1000 * Number(process.env.SUITE_PAUSE)));
    yield text;
  }
}
