"""`python -m tests.privacy.export_schema`: writes docs/export-schema.json anew, after a change of what exports tell."""

import json
import os
from pathlib import Path

import django

COPY = Path(__file__).resolve().parent.parent.parent / "docs/export-schema.json"

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from memories.privacy.exports import schema

    COPY.write_text(json.dumps(schema.document(), indent=1) + "\n", encoding="utf-8")
