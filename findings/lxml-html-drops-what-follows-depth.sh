#!/bin/bash
# lxml==6.1.3 (libxml2 2.14.6), beautifulsoup4==4.15.0, trafilatura==2.3.1, Python 3.11.
# lxml.html mends whatever HTML it is given, and deeply nested HTML is valid (mails that were forwarded often, exports of
# editors). One would expect all text of such a page, or an error.
# Seen: where a 257th element would be open the parser stops. It raises nothing and returns a tree that ends there: not only
# the deep text is missing, but all that follows on the page, too. `huge_tree=True` moves the border to 2,048 elements, where
# the same happens. Only `parser.error_log` has a line, ERR_RESOURCE_LIMIT. trafilatura loses the same text;
# BeautifulSoup has it, also with "lxml".
# Output seen:
#   lxml 256: head deep tail; log: -
#   lxml 257: head; log: ERR_RESOURCE_LIMIT
#   lxml with huge_tree 2048: head deep tail; log: -
#   lxml with huge_tree 2049: head; log: ERR_RESOURCE_LIMIT
#   BeautifulSoup with lxml 257: head deep tail
#   BeautifulSoup with html.parser 257: head deep tail
#   trafilatura 257: head
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: \
  'lxml==6.1.3' 'beautifulsoup4==4.15.0' 'trafilatura==2.3.1' 'lxml_html_clean==0.4.6' 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import lxml.html
import trafilatura
from bs4 import BeautifulSoup


def page(depth):
    """So many elements in each other; <html> and <body> are two of them."""
    deep = "<div>" * (depth - 2) + "Somewhere deep in it." + "</div>" * (depth - 2)
    return f"<html><body><p>The head of the page.</p>{deep}<p>The tail of the page.</p></body></html>"


def told(text):
    words = {"head": "The head", "deep": "deep in", "tail": "The tail"}
    return " ".join(name for name, part in words.items() if part in text)


def by_lxml(depth, **options):
    parser = lxml.html.HTMLParser(**options)
    text = lxml.html.document_fromstring(page(depth), parser=parser).text_content()
    return f"{told(text)}; log: {' '.join({error.type_name for error in parser.error_log}) or '-'}"


for depth in (256, 257):
    print(f"lxml {depth}: {by_lxml(depth)}")
for depth in (2048, 2049):
    print(f"lxml with huge_tree {depth}: {by_lxml(depth, huge_tree=True)}")
for parser in ("lxml", "html.parser"):
    print(f"BeautifulSoup with {parser} 257: {told(BeautifulSoup(page(257), parser).get_text())}")
print(f"trafilatura 257: {told(trafilatura.html2txt(page(257)))}")
P
venv/bin/python run.py > seen.txt
cat seen.txt
diff seen.txt - <<'S'
lxml 256: head deep tail; log: -
lxml 257: head; log: ERR_RESOURCE_LIMIT
lxml with huge_tree 2048: head deep tail; log: -
lxml with huge_tree 2049: head; log: ERR_RESOURCE_LIMIT
BeautifulSoup with lxml 257: head deep tail
BeautifulSoup with html.parser 257: head deep tail
trafilatura 257: head
S
