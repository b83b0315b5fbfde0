"""The command, whose session goes on."""

import json
from pathlib import Path

from talk import CONVERSATIONS, KEY, MODEL, TELLS, URL, run, texts

folder = Path.home() / ".pi/agent"
folder.mkdir(parents=True)
suite = {"baseUrl": URL, "apiKey": KEY, "api": "openai-completions", "models": [{"id": MODEL}],
         "headers": {"X-Memory": "on", "X-Memory-Said": "last"} if TELLS else {}}  # fmt: skip
(folder / "models.json").write_text(json.dumps({"providers": {"suite": suite}}), encoding="utf-8")
for conversation in CONVERSATIONS:
    for turn, text in enumerate(texts(conversation)):
        run("pi", "--provider", "suite", "--model", MODEL, *(["-c"] if turn else []), "-p", text)
