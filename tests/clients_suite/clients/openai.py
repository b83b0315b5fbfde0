"""A conversation by hand with a tool, and one by responses; the last message of the first one is asked twice."""

import json

import openai
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts

client = openai.OpenAI(base_url=URL, api_key=KEY, default_headers=headers(0))
tool = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
messages = [{"role": "system", "content": "You are a helpful assistant."}]
for text in texts(CONVERSATIONS[0]):
    messages.append({"role": "user", "content": text})
    while True:
        said = client.chat.completions.create(model=MODEL, messages=messages, tools=[tool]).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            break
        city = json.loads(said.tool_calls[0].function.arguments)["city"]
        messages.append({"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": f"{city}: sunny"})
# The answer is asked for again.
client.chat.completions.create(model=MODEL, messages=messages[:-1], tools=[tool])

client, items = openai.OpenAI(base_url=URL, api_key=KEY, default_headers=headers(1)), []
for text in texts(CONVERSATIONS[1]):
    items.append({"role": "user", "content": text})
    items += [one.model_dump(exclude_none=True) for one in client.responses.create(model=MODEL, input=items).output]
