#!/bin/bash
# llama-index-core==0.14.25, Python 3.11.
# An agent with `initial_state` shows the model its state in front of the newest message. One would expect the memory to
# keep what the user said. Seen: the agent writes the state into the message that the memory gave it, and a
# ChatMemoryBuffer gives the very objects that it keeps. So from then on the memory has, in role `user`,
# "Current state:\n{'mood': 'good'}\n\nCurrent message:\nHello.\n": whoever reads the memory afterwards takes the
# application's state for the user's words. With `Memory` (SQL) the memory stays as it was, and the next request has no
# state in front of that message: a prompt's cache ends there.
# Output seen:
#   ChatMemoryBuffer: "Current state:\n{'mood': 'good'}\n\nCurrent message:\nHello.\n"
#   Memory: 'Hello.'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: 'llama-index-core==0.14.25' 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import asyncio

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory


async def main():
    for memory in (ChatMemoryBuffer.from_defaults(), Memory.from_defaults(session_id="s1")):
        agent = ReActAgent(llm=MockLLM(), streaming=False, initial_state={"mood": "good"})
        try:
            await agent.run("Hello.", memory=memory, max_iterations=1)
        except Exception:
            pass  # the mock says nothing that ends a run; the memory has the message all the same
        said = [one.content for one in await memory.aget_all() if one.role == "user"]
        print(f"{type(memory).__name__}: {said[0]!r}")


asyncio.run(main())
P
"$folder/venv/bin/python" -W ignore run.py 2>/dev/null
