#!/bin/bash
# smolagents==1.26.0 (with openai), Python 3.11.
# A ToolCallingAgent offers its tools to the endpoint natively (field `tools`), and the endpoint answers with native
# `tool_calls`. One would expect the next request to send them back as `tool_calls` and a message of role `tool`.
# Seen: nothing of role `tool` and no `tool_calls` are ever sent. The call comes back as an assistant TEXT ("Calling
# tools:\n[{…"), its result as role `user` ("Observation:\nUtrecht: sunny"). With `reset=False` the final answer that the
# MODEL gave before and the person's new task are one single message of role `user`:
# "Observation:\nIt is sunny, my name is Model.\nNew task:\nI moved to Bruges."
# So whoever takes role `user` for the person takes tool results and the model's own answers for the person's words.
# Output seen:
#   roles: system user assistant user assistant user
#   last: 'Observation:\nIt is sunny, my name is Model.\nNew task:\nI moved to Bruges.'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: 'smolagents[openai]==1.26.0' 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

ASKED, CALLS = [], [("weather", {"city": "Utrecht"}), ("final_answer", {"answer": "It is sunny, my name is Model."}),
                    ("final_answer", {"answer": "Noted."})]


class Endpoint(BaseHTTPRequestHandler):
    def log_message(self, *_): pass

    def do_POST(self):
        ASKED.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        name, arguments = CALLS[len(ASKED) - 1]
        call = {"id": f"call_{len(ASKED)}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                           "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
                           "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = HTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: The city.
    """
    return f"{city}: sunny"


agent = ToolCallingAgent(tools=[weather], model=OpenAIModel("m", api_base=f"http://127.0.0.1:{server.server_port}/v1", api_key="k"))
agent.run("What is the weather in Utrecht?")
agent.run("I moved to Bruges.", reset=False)
messages = ASKED[-1]["messages"]
text = lambda one: one["content"] if isinstance(one["content"], str) else "".join(part["text"] for part in one["content"])
print("roles:", *[one["role"] for one in messages])
print("last:", repr(text(messages[-1])))
assert {one["function"]["name"] for one in ASKED[0]["tools"]} == {"weather", "final_answer"}
assert not any(one["role"] == "tool" or one.get("tool_calls") for one in messages)
assert text(messages[2]).startswith("Calling tools:") and text(messages[3]) == "Observation:\nUtrecht: sunny"
assert text(messages[-1]) == "Observation:\nIt is sunny, my name is Model.\nNew task:\nI moved to Bruges."
P
NO_PROXY=127.0.0.1 venv/bin/python run.py | grep -E "^(roles|last): " | tee out
test "$(wc -l < out)" -eq 2
