"""Conversations by hand with a tool, streamed and whole."""

import json

import litellm
from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts

parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
for number, conversation in enumerate(CONVERSATIONS):
    messages = [{"role": "system", "content": "Be brief."}]
    for text in texts(conversation):
        messages.append({"role": "user", "content": text})
        while True:
            said = litellm.completion(model=f"openai/{MODEL}", api_base=URL, api_key=KEY, messages=messages,
                                      tools=[tool], extra_headers=headers(number)).choices[0].message  # fmt: skip
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                break
            city = json.loads(said.tool_calls[0].function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": f"{city}: sunny"})
