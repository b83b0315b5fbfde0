"""The command, whose session goes on."""

import os

from talk import CONVERSATIONS, KEY, MODEL, URL, run, texts

os.environ.update(COPILOT_PROVIDER_BASE_URL=URL, COPILOT_PROVIDER_API_KEY=KEY, COPILOT_MODEL=MODEL)
for conversation in CONVERSATIONS:
    for turn, text in enumerate(texts(conversation)):
        run("copilot", *(["--continue"] if turn else []), "--allow-all-tools", "-p", text)
