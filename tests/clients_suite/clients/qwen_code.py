"""The command, whose session goes on; after each text a sub-agent of its own reads the conversation."""

import os

from talk import CONVERSATIONS, KEY, MODEL, URL, run, texts

os.environ.update(OPENAI_BASE_URL=URL, OPENAI_API_KEY=KEY, OPENAI_MODEL=MODEL)
for conversation in CONVERSATIONS:
    for turn, text in enumerate(texts(conversation)):
        run("qwen", "--auth-type", "openai", *(["--continue"] if turn else []), "-p", text)
