const { createHash } = require("node:crypto");
const { NodeConnectionTypes, NodeOperationError } = require("n8n-workflow");

const INCLUDE = ["profile", "facts", "groups", "episodes", "turns", "working_memory"];
const PATIENCE_MS = 5000;
const only = (...operation) => ({ show: { operation } });

/** Recall what is remembered of a person, store what they and the agent said, and end a conversation. */
class MemoryHub {
  description = {
    displayName: "Memory Hub",
    name: "memoryHub",
    icon: "fa:brain",
    group: ["transform"],
    version: 1,
    subtitle: '={{$parameter["operation"]}}',
    description: "Long-term memory of people for AI agents",
    defaults: { name: "Memory Hub" },
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    usableAsTool: true,
    credentials: [{ name: "memoryHubApi", required: true }],
    properties: [
      {
        displayName: "Operation",
        name: "operation",
        type: "options",
        noDataExpression: true,
        default: "recall",
        options: [
          {
            name: "Recall",
            value: "recall",
            action: "Recall what is remembered",
            description: "Get the context for a message, in two blocks: stable for the system prompt, volatile for before the message",
          },
          { name: "Store", value: "store", action: "Store what was said", description: "Store a message of the person, and the agent's answer" },
          { name: "End", value: "end", action: "End a conversation", description: "Say that the conversation is over" },
        ],
      },
      { displayName: "Person", name: "userId", type: "string", default: "", required: true, description: "ID of the person in your application" },
      { displayName: "Conversation", name: "sessionId", type: "string", default: "={{ $json.sessionId }}", description: "ID of the conversation" },
      {
        displayName: "Message",
        name: "message",
        type: "string",
        typeOptions: { rows: 3 },
        default: "={{ $json.chatInput }}",
        displayOptions: only("recall", "store"),
        description: "What the person said",
      },
      {
        displayName: "Answer",
        name: "answer",
        type: "string",
        typeOptions: { rows: 3 },
        default: "",
        displayOptions: only("store"),
        description: "What the agent answered, if it did",
      },
      {
        displayName: "Options",
        name: "options",
        type: "collection",
        placeholder: "Add option",
        default: {},
        options: [
          { displayName: "Agent", name: "agentId", type: "string", default: "", description: "ID of the agent" },
          {
            displayName: "Author of the Message",
            name: "author",
            type: "options",
            default: "person",
            options: ["person", "application", "model", "other"].map((value) => ({ name: value, value })),
            description: "Whose words it holds. Only a person's own words count as what they said.",
          },
          { displayName: "Message ID", name: "messageId", type: "string", default: "", description: "What is sent again under the same ID is stored once" },
          { displayName: "Tokens", name: "maxTokens", type: "number", default: 2000, description: "Most tokens of a context" },
          { displayName: "Tokenizer", name: "tokenizer", type: "string", default: "", description: "Name of your model, which counts them" },
          {
            displayName: "Stop When the Hub Is Away",
            name: "stop",
            type: "boolean",
            default: false,
            description: "Whether the workflow fails then. Otherwise it goes on without memory, and the output says so.",
          },
        ],
      },
    ],
  };

  async execute() {
    const found = [];
    for (const [index, item] of this.getInputData().entries()) {
      const json = await one(this, index);
      found.push({ json: { ...item.json, memoryHub: json }, pairedItem: { item: index } });
    }
    return [found];
  }
}

async function one(node, index) {
  const given = (name, fallback = "") => node.getNodeParameter(name, index, fallback);
  const operation = given("operation");
  const options = given("options", {});
  const userId = String(given("userId") ?? "");
  if (!userId) throw new NodeOperationError(node.getNode(), "The person is missing: set Person.", { itemIndex: index });
  const sessionId = String(given("sessionId") ?? "");
  if (!sessionId && operation !== "recall") {
    throw new NodeOperationError(node.getNode(), "The conversation is missing: set Conversation.", { itemIndex: index });
  }
  const names = { user_id: userId, ...(sessionId && { session_id: sessionId }), ...(options.agentId && { agent_id: options.agentId }) };
  try {
    if (operation === "recall") return recalled(await asked(node, "/context", contextOf(names, given("message"), options)));
    if (operation === "end") return { ended: true, ...(await asked(node, "/sessions/end", names)) };
    const messages = messagesOf(node, index, { message: given("message"), answer: given("answer"), options });
    return messages.length ? await asked(node, "/turns", { ...names, messages }) : { turns: [] };
  } catch (error) {
    if (options.stop) throw error;
    // Nothing of what was said.
    const away = String(error?.httpCode ?? error?.response?.status ?? error?.code ?? error?.name ?? "error");
    return operation === "recall" ? { memory: "", stable: "", volatile: "", away } : { away };
  }
}

function contextOf(names, message, { maxTokens, tokenizer }) {
  const query = String(message ?? "").trim().slice(0, 20_000);
  const include = names.session_id ? INCLUDE : INCLUDE.filter((part) => part !== "working_memory");
  return { ...names, include, blocks: true, ...(query && { query }), ...(maxTokens && { max_tokens: maxTokens }), ...(tokenizer && { tokenizer }) };
}

function recalled({ memory, stable, volatile, revision, evidence }) {
  return { memory, stable: stable?.memory ?? memory ?? "", volatile: volatile?.memory ?? "", revision, evidence };
}

function messagesOf(node, index, { message, answer, options }) {
  // A run that is tried again by n8n stores nothing twice.
  const run = options.messageId || createHash("sha256").update(`${node.getExecutionId()} ${node.getNode().id} ${index}`).digest("hex");
  const said = { role: "user", content: String(message ?? ""), author: options.author ?? "person", external_id: `${run}:said` };
  const answered = { role: "assistant", content: String(answer ?? ""), external_id: `${run}:answered` };
  return [said, answered].filter(({ content }) => content.trim());
}

async function asked(node, path, body) {
  const { baseUrl } = await node.getCredentials("memoryHubApi");
  const url = `${baseUrl.replace(/\/+$/, "")}/api/v1${path}`;
  const request = { method: "POST", url, body, json: true, timeout: PATIENCE_MS };
  return node.helpers.httpRequestWithAuthentication.call(node, "memoryHubApi", request);
}

module.exports = { MemoryHub };
