#!/bin/bash
# strands-agents==1.62.0 (with openai), Python 3.11.
# SummarizingConversationManager replaces old messages by a summary that a model made. LangChain, deepagents and the
# command line agents put a sentence or a tag around such a summary. One would expect some mark here, too, or role system.
# Seen: the summary is sent as a bare message of role `user`, word for word as the model wrote it, and nothing tells it
# from what a person typed. The order to summarize is also role `user` ("Please summarize this conversation."), behind the
# messages of the conversation.
# Output seen:
#   order: 'Please summarize this conversation.'
#   roles: user user assistant user
#   first: 'I am allergic to peanuts.'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: 'strands-agents[openai]==1.62.0' 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import json, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

ASKED = []


class Endpoint(BaseHTTPRequestHandler):
    def log_message(self, *_): pass

    def do_POST(self):
        ASKED.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        says = "I am allergic to peanuts." if "summarize this" in json.dumps(ASKED[-1]["messages"][-1]) else "Noted."
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        chunks = [{**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": says}, "finish_reason": None}]},
                  {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                  {**head, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for one in [*map(json.dumps, chunks), "[DONE]"]:
            self.wfile.write(f"data: {one}\n\n".encode())


server = HTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()

from strands import Agent
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.models.openai import OpenAIModel

manager = SummarizingConversationManager(summary_ratio=0.8, preserve_recent_messages=2)
model = OpenAIModel(client_args={"base_url": f"http://127.0.0.1:{server.server_port}/v1", "api_key": "k"}, model_id="m")
agent = Agent(model=model, conversation_manager=manager, callback_handler=None)
for said in ("I live in Utrecht.", "My cat is called Miso.", "I moved to Bruges."):
    agent(said)
manager.reduce_context(agent)
order = ASKED[-1]["messages"][-1]
agent("What do you know?")
text = lambda one: one["content"] if isinstance(one["content"], str) else "".join(part["text"] for part in one["content"])
messages = [one for one in ASKED[-1]["messages"] if one["role"] != "system"]
print("order:", repr(text(order)))
print("roles:", *[one["role"] for one in messages])
print("first:", repr(text(messages[0])))
assert (order["role"], text(order)) == ("user", "Please summarize this conversation.")
assert (messages[0]["role"], text(messages[0])) == ("user", "I am allergic to peanuts.")
P
NO_PROXY=127.0.0.1 venv/bin/python run.py | tee out
test "$(wc -l < out)" -eq 3
