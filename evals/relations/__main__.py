"""`python -m evals.relations --data FOLDER`: LoCoMo told to a scripted model that states triples.

It runs on a database server of its own and prints the table of docs/graph.md; exit code 1 when a triple has no evidence
or outlives its fact.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from evals import talks
from memoryhub import embedded_postgres
from tests.scratch import scratch_folder

PEOPLE = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m evals.relations", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--people", type=int, default=PEOPLE, help="how many conversations")
    arguments = parser.parse_args()
    for name in [name for name in os.environ if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL"]:
        del os.environ[name]
    home = scratch_folder()
    os.environ |= {"MEMORYHUB_HOME": str(home), "DJANGO_SETTINGS_MODULE": "memoryhub.settings"}
    os.environ["MEMORYHUB_LLM"] = "scripted"
    try:
        with embedded_postgres.attached(home, fast=True):
            _replay(arguments)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _replay(arguments: argparse.Namespace) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    from evals.relations import replaying

    call_command("migrate", verbosity=0)
    tenant = replaying.tenant()
    checked = []
    for talk in talks.of_locomo(arguments.data, arguments.people):
        with replaying.answering():
            person = replaying.replay(tenant, talk)
        checked.append(replaying.look(person, talk))
    sys.stdout.write(replaying.table(checked))
    if wrong := [fault for one in checked for fault in one.wrong]:
        sys.stderr.write("\n".join(wrong) + "\n")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
