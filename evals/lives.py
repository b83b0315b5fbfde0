"""`python -m evals.lives --data FOLDER`: conversations told to a hub, and again while its processes are killed.

Every fed turn must be in one extraction and, where its session is long enough, in one episode; what is kept must be
the same both times. A page of Markdown; exit code 1 when something is wrong.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import django

from evals import talks
from evals.talks import Talk

if TYPE_CHECKING:
    from tests.faults.end_state import EndState
    from tests.faults.killing import Kill
    from tests.faults.posting import Took

CONVERSATIONS = 3
KILLS = 10
SEED = 2026
MODEL_SECONDS = 0.1
# A session is left alone soon, and its window compacted while it is being told.
HURRIED = {
    "MEMORYHUB_LLM_CONCURRENCY": "2",
    "MEMORYHUB_IDLE_SECONDS": "5",
    "MEMORYHUB_MAX_WAIT_SECONDS": "10",
}
NUMBERS = '{"compaction_quiet_seconds": 1, "compaction_wait_seconds": 3}'


@dataclass(frozen=True)
class Lived:
    """One replay: how long it took, what was killed, calls of the model by name, what is kept, and the version of
    PostgreSQL."""

    took: "Took"
    kills: "Sequence[Kill]"
    calls: Counter[str]
    state: "EndState"
    server: str


def main() -> None:
    """Replay twice and print the page."""
    from evals import lives_page
    from tests.faults.killing import planned

    arguments = _arguments()
    chosen = [*talks.of_locomo(arguments.data, CONVERSATIONS), *talks.of_memorybank(arguments.data)][: arguments.first]
    plain = lived(chosen, [])
    within = plain.took.posting + plain.took.draining
    killed = lived(chosen, planned(arguments.kills, within=within, seed=arguments.seed))
    page = lives_page.page(plain, killed, seed=arguments.seed)
    if arguments.write:
        arguments.write.write_text(page, encoding="utf-8")
    sys.stdout.write(page)
    if plain.state.wrong or killed.state.wrong or plain.state.digests != killed.state.digests:
        raise SystemExit(1)


def lived(chosen: Sequence[Talk], plan: "Sequence[Kill]") -> Lived:
    """Tell it all to a hub of its own while the plan is carried out, and look at what is kept."""
    from memories import conf
    from tests.faults import end_state, killing, posting
    from tests.faults.hubs import assert_sound, hub_asking
    from tests.faults.parrot import Parrot
    from tests.scratch import connect

    model = Parrot(seconds=MODEL_SECONDS)
    with hub_asking(model, **HURRIED) as hub:
        with connect(hub.home) as database:
            database.execute("UPDATE memories_tenant SET numbers = %s", [NUMBERS])
        killer = killing.Killing(hub, plan)
        killer.start()
        took = posting.post_all(hub, chosen)
        killer.end()
        posting.wait_until_drained(hub)
        assert_sound(hub)
        with connect(hub.home) as database:
            state = end_state.look(database, texts(chosen), conf.hub_rules())
            server = database.info.parameter_status("server_version") or ""
    return Lived(took, killer.done, model.asked, state, server)


def texts(chosen: Sequence[Talk]) -> dict[str, dict[str, list[str]]]:
    """What is said, by person and session."""
    return {
        talk.person: {session.name: [one["content"] for one in session.messages] for session in talk.sessions}
        for talk in chosen
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.lives", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many processes are killed the second time")
    parser.add_argument("--seed", type=int, default=SEED, help="chooses what is killed, and when")
    parser.add_argument("--first", type=int, help="so many people; all")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    return parser.parse_args()


if __name__ == "__main__":
    for name in list(os.environ):
        if name.startswith(("MEMORYHUB_", "OPENAI_")) or name == "DATABASE_URL":
            del os.environ[name]
    os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
    django.setup()
    main()
