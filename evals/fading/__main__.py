"""`python -m evals.fading` lives through 365 nights on a server of its own and writes docs/forgetting.md."""

import os
import shutil
from pathlib import Path

from memoryhub import embedded_postgres
from tests.scratch import scratch_folder

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE, PICTURE = ROOT / "docs/forgetting.md", ROOT / "docs/images/forgetting.svg"


def main() -> None:
    home = scratch_folder()
    os.environ |= {"MEMORYHUB_HOME": str(home), "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
    os.environ.pop("DATABASE_URL", None)
    try:
        with embedded_postgres.attached(home, fast=True):
            _write()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _write() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from evals.fading import page, year

    call_command("migrate", verbosity=0)
    lived = year.live(nights=range(year.LAST + 1))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(page.BEGIN_MARK)
    _, _, after = rest.partition(page.END_MARK)
    PAGE.write_text(before + page.BEGIN_MARK + page.table(lived) + page.END_MARK + after, encoding="utf-8")
    PICTURE.write_text(page.chart(lived), encoding="utf-8")


if __name__ == "__main__":
    main()
