"""The command, whose session goes on; it asks for a title beside the first message."""

import json
from pathlib import Path

from talk import CONVERSATIONS, KEY, MODEL, URL, run, texts

options = {"baseURL": URL, "apiKey": KEY}
suite = {"npm": "@ai-sdk/openai-compatible", "name": "suite", "options": options, "models": {MODEL: {"name": MODEL}}}
config = {"provider": {"suite": suite}, "model": f"suite/{MODEL}", "small_model": f"suite/{MODEL}", "autoupdate": False}
Path("opencode.json").write_text(json.dumps(config), encoding="utf-8")
for conversation in CONVERSATIONS:
    for turn, text in enumerate(texts(conversation)):
        # As an argument it would be sent between quotation marks.
        run("opencode", "run", *(["-c"] if turn else []), typed=text)
