"""The command: a conversation that goes on, then a question about a file."""

import json
import os
import subprocess
from pathlib import Path

from talk import CONVERSATIONS, KEY, MODEL, URL, headers, texts

folder = Path.cwd() / "llm"
folder.mkdir()
os.environ["LLM_USER_PATH"] = str(folder)
subprocess.run(["llm", "keys", "set", "suite", "--value", KEY], check=True)
for number, conversation in enumerate(CONVERSATIONS):
    given = [{"model_id": "suite", "model_name": MODEL, "api_base": URL, "api_key_name": "suite",
              "headers": headers(number)}]  # fmt: skip
    # JSON is YAML.
    (folder / "extra-openai-models.yaml").write_text(json.dumps(given), encoding="utf-8")
    letter = folder / "letter.txt"
    letter.write_text("Anna writes: I am allergic to nuts. My cat is called Tom.\n", encoding="utf-8")
    for turn, text in enumerate(texts(conversation)):
        more = ["-c"] if turn else []
        about = ["-f", str(letter)] if number == 1 else []
        subprocess.run(["llm", "-m", "suite", *more, *about, text], check=True, stdin=subprocess.DEVNULL)
