#!/bin/bash
# mempalace==3.11.0, Python 3.11; no model and no server is needed.
# In ChatGPT somebody can edit a question. The export then has a tree: both branches, and `current_node`, which names the last
# message of the branch that is shown. One expects an importer to keep what is shown, or at least both with a mark.
# Seen: mempalace's normalize() walks from the root to the first child, always. It never reads `current_node`. So of an edited
# question it keeps what the person took back, with the answer to that, and drops what they wrote instead, with its answer.
# Nothing is logged or counted. The same happens with an answer that was made again: the first one stays, not the one that
# the person went on from, and everything said after that is lost.
# Output seen:
#   shown at last in ChatGPT: I live in Bruges. Which trains leave early?
#   kept: ['I live in Ghent. Which trains leave early?', 'The 5:40 from Ghent.']
#   anything of what was shown is kept: False
#   without the edit the shown branch is kept: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: mempalace==3.11.0 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import json
from mempalace.normalize import normalize

def message(name, role, text, at):
    return {"id": name, "author": {"role": role}, "create_time": at, "content": {"content_type": "text", "parts": [text]}}

asked, edited = "I live in Ghent. Which trains leave early?", "I live in Bruges. Which trains leave early?"
nodes = {
    "root": {"id": "root", "parent": None, "children": ["a", "c"], "message": None},
    "a": {"id": "a", "parent": "root", "children": ["b"], "message": message("a", "user", asked, 1.0)},
    "b": {"id": "b", "parent": "a", "children": [], "message": message("b", "assistant", "The 5:40 from Ghent.", 2.0)},
    "c": {"id": "c", "parent": "root", "children": ["d"], "message": message("c", "user", edited, 3.0)},
    "d": {"id": "d", "parent": "c", "children": [], "message": message("d", "assistant", "The 5:52 from Bruges.", 4.0)},
}
with open("conversations.json", "w") as file:
    json.dump({"title": "Trains", "mapping": nodes, "current_node": "d"}, file)
kept = [line.strip("> ") for line in normalize("conversations.json").splitlines() if line.strip()]
print("shown at last in ChatGPT:", edited)
print("kept:", kept)
print("anything of what was shown is kept:", any("Bruges" in line for line in kept))
# Control: without the edit all of it is kept.
nodes["root"]["children"] = ["c"]
with open("conversations.json", "w") as file:
    json.dump({"title": "Trains", "mapping": {name: nodes[name] for name in ("root", "c", "d")}, "current_node": "d"}, file)
print("without the edit the shown branch is kept:", "Bruges" in normalize("conversations.json"))
P
venv/bin/python run.py 2>/dev/null | tee out
diff out - <<'O'
shown at last in ChatGPT: I live in Bruges. Which trains leave early?
kept: ['I live in Ghent. Which trains leave early?', 'The 5:40 from Ghent.']
anything of what was shown is kept: False
without the edit the shown branch is kept: True
O
