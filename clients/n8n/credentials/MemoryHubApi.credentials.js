/** Where the hub is, and a key of it. */
class MemoryHubApi {
  name = "memoryHubApi";
  displayName = "Memory Hub API";
  properties = [
    { displayName: "Address", name: "baseUrl", type: "string", default: "http://127.0.0.1:8000", required: true },
    {
      displayName: "Key",
      name: "apiKey",
      type: "string",
      typeOptions: { password: true },
      default: "",
      required: true,
      description: "A key with the scopes ingest and read, mh_…",
    },
  ];
  authenticate = { type: "generic", properties: { headers: { Authorization: "=Bearer {{$credentials.apiKey}}" } } };
  test = {
    request: {
      baseURL: "={{$credentials.baseUrl}}",
      url: "/api/v1/context",
      method: "POST",
      body: { user_id: "n8n-credential-test", max_tokens: 0 },
    },
  };
}

module.exports = { MemoryHubApi };
