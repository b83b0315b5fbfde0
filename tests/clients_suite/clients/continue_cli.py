"""The command, whose session goes on."""

from pathlib import Path

from talk import CONVERSATIONS, KEY, MODEL, URL, run, texts

Path("config.yaml").write_text(
    f"name: suite\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: suite\n    provider: openai\n    model: {MODEL}\n"
    f"    apiBase: {URL}\n    apiKey: {KEY}\n    roles: [chat]\n",
    encoding="utf-8",
)
for conversation in CONVERSATIONS:
    for turn, text in enumerate(texts(conversation)):
        run("cn", "--config", "config.yaml", *(["--resume"] if turn else []), "-p", text)
