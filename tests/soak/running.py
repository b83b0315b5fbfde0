"""A soak from its beginning to its end: the hub, all who use it, the faults, and what is looked at afterwards."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryhub import embedded_postgres
from tests.commands.hub import RUNNING, Hub, wait_until
from tests.llm.endpoint import Endpoint
from tests.soak import ending, faults, heavy, staff, stage
from tests.soak.asking import Caller, Client
from tests.soak.importer import Importer
from tests.soak.journal import Journal, of_kind, read
from tests.soak.judge import CHECKS
from tests.soak.makers import Makers
from tests.soak.model import Model
from tests.soak.people import Chatter, Person, Talker
from tests.soak.readers import Reader, Tools
from tests.soak.visitor import Visitor

# The ids are the same in all tenants.
TALKING = [Person(slug, f"p{n}", f"{letters}{n:03}") for slug, letters in stage.TENANTS.items() for n in (1, 2, 3)]
CHATTING = [Person("alpha", "chatter", "gw001"), Person("beta", "chatter", "gw002")]
AGENT, KEEPING = Person("beta", "agent-s", "mc001"), Person("beta", "keeper-s", "ke001")
DESK, FADING = Person("alpha", "operator-s", "op001"), Person("gamma", "fader-s", "fd001")
VISITING, IMPORTING = Person(stage.OWN_PAGES, "visitor-s", "vi001"), Person("alpha", "importer-s", "im001")
MAKING = [Person(stage.SKILLED, f"maker-{n}", f"mk{n:03}") for n in (1, 2, 3)]
# One has idempotency keys, the other ids of messages.
ASKING = [Person("alpha", "asker-1", "as001"), Person("beta", "asker-2", "as002")]
HEAVY = Person("alpha", "heavy", "hv001")
LEAVING = "ez"
PASS = ("decay", "--tenant", FADING.tenant)


class SoakHub(Hub):
    """Its output is not on the disk that gets full: it tells which process is which."""

    def __init__(self, home: Path, log: Path) -> None:
        super().__init__(home)
        self._log = log


@dataclass(frozen=True)
class Plan:
    """What a run is made of; with a `pace` of 2 clients wait twice as long, for a machine with other work."""

    seed: int
    seconds: float
    pace: float = 1.0


class Soak:
    """Journals of one run, on one clock that begins with the traffic."""

    def __init__(self, folder: Path, hub: Hub, keys: stage.Keys, plan: Plan) -> None:
        self.folder, self.hub, self.keys, self.seed = folder, hub, keys, plan.seed
        self._pace = plan.pace
        self._begun = time.monotonic()
        self.log = self.journal("soak")
        self.commands = staff.Commands(self.journal("commands"), hub.home)
        self.chatters = [Chatter(self.caller(f"gateway-{one.prefix}", one.tenant), one) for one in CHATTING]

    def journal(self, name: str) -> Journal:
        return Journal(self.folder, name, self._begun)

    def caller(self, name: str, tenant: str) -> Caller:
        return Caller(self.hub.port, self.keys.tenants[tenant], self.journal(name))

    def clients(self) -> Iterator[Client]:
        for person in TALKING:
            talker = Talker(self.caller(f"talker-{person.prefix}", person.tenant), person, self._seed(person.prefix))
            yield self._client(f"talker {person.prefix}", talker.step, every=2.0)
        for slug in stage.TENANTS:
            known = [person for person in TALKING if person.tenant == slug]
            reader = Reader(self.caller(f"reader-{slug}", slug), known, self._seed(slug))
            yield self._client(f"reader {slug}", reader.step, every=1.0)
        for chatter in self.chatters:
            yield self._client(f"gateway {chatter.person.prefix}", chatter.step, every=2.0)
        yield from self._with_much()
        yield from self._staff()

    def _with_much(self) -> Iterator[Client]:
        """Those who have many turns, files, trajectories, or conversations from elsewhere."""
        talker = Talker(self.caller("heavy", HEAVY.tenant), HEAVY, self._seed(HEAVY.prefix))
        yield self._client("heavy", heavy.HeavyTalker(talker).step, every=4.0)
        reader = Reader(self.caller("reader-heavy", HEAVY.tenant), [HEAVY], self._seed("reader-heavy"))
        yield self._client("reader heavy", reader.step, every=1.5)
        for person in ASKING:
            caller = self.caller(f"asker-{person.prefix}", person.tenant)
            yield self._client(
                f"asker {person.prefix}", heavy.Asker(caller, person, self._seed("asker")).step, every=10
            )
        makers = Makers(self.caller("makers", stage.SKILLED), MAKING, self._seed("makers"))
        yield self._client("makers", makers.step, every=4.0)
        importer = Importer(self.caller("importer", IMPORTING.tenant), IMPORTING, self._seed("importer"))
        yield self._client("importer", importer.step, every=15.0)
        visitor = Visitor(self.hub.port, self.caller("visitor", VISITING.tenant), VISITING)
        yield self._client("visitor", visitor.step, every=10.0)

    def _staff(self) -> Iterator[Client]:
        agent = Tools(Caller(self.hub.port, self.keys.agent, self.journal("mcp")), AGENT, self._seed("mcp"))
        yield self._client("mcp", agent.step, every=1.0)
        keeper = staff.Keeper(self.caller("keeper", KEEPING.tenant), KEEPING, self._seed("keeper"))
        yield self._client("keeper", keeper.step, every=1.5)
        yield self._client("fader", staff.Fader(self.caller("fader", FADING.tenant), FADING).step, every=5.0)
        desk = self.caller("operator", DESK.tenant)
        operator = staff.Operator(self.hub.port, desk, DESK, self.keys.operator, self._seed("operator"))
        yield self._client("operator", operator.step, every=3.0)
        eraser = staff.Eraser(
            self.caller("eraser", FADING.tenant), self.commands, FADING.tenant, LEAVING, self._seed("")
        )
        yield self._client("eraser", eraser.step, every=75.0)
        yield self._client("passes", self._forget, every=60.0)

    def _client(self, name: str, step: Callable[[], None], *, every: float) -> Client:
        return Client(name, step, every=every * self._pace)

    def _forget(self) -> None:
        self.commands.until_done(*PASS)

    def _seed(self, name: str) -> str:
        return f"{self.seed} {name}"

    def use(self, break_things: Callable[[], None]) -> None:
        """Everybody at once, while things are broken; what a client has begun it brings to its end."""
        clients = list(self.clients())
        for client in clients:
            client.start()
        try:
            break_things()
        finally:
            for client in clients:
                client.stop()
        self.log.note(do="traffic ended", load=round(os.getloadavg()[2], 1))
        for client in clients:
            try:
                client.end()
            except (RuntimeError, TimeoutError) as error:
                self.log.note(do="broke off", client=client.name, why=f"{error}: {error.__cause__!r}"[:300])

    def close(self) -> None:
        """Let the hub do what it has left; tell it once more what the gateway may have missed."""
        ending.drain(self.hub, self.log)
        for chatter in self.chatters:
            chatter.close()
        time.sleep(faults.SECOND)
        ending.wait(self.hub)
        self.commands.until_done(*PASS)

    def look(self) -> None:
        """Note what there is."""
        callers = {slug: self.caller(f"end-{slug}", slug) for slug in stage.TENANTS}
        for person in (*TALKING, *CHATTING, *ASKING, IMPORTING, HEAVY):
            ending.note_turns(callers[person.tenant], person, self.log)
        for person in ASKING:
            ending.note_files(callers[person.tenant], person, self.log)
        for person in MAKING:
            ending.note_trajectories(callers[person.tenant], person, self.log)
        ending.note_facts(callers[AGENT.tenant], AGENT, self.log)
        journals = read(self.folder)
        kept = {"keeper": KEEPING.tenant, "operator": DESK.tenant, "fader": FADING.tenant, "visitor": VISITING.tenant}
        for name, tenant in kept.items():
            for fact in dict.fromkeys(line["id"] for line in journals[name] if line["do"] in ("fact", "fades")):
                ending.note_fact(callers[tenant], fact, self.log)
        ending.note_extraction(self.hub, self.log)
        gone = [line["person"] for line in of_kind(journals, "erased")]
        ending.note_traces(self.hub, self.log, gone)
        for command in CHECKS:
            self.commands.run(command, at_end=True)


@contextmanager
def _up(home: Path, folder: Path, environ: dict[str, str]) -> Iterator[Hub]:
    hub = SoakHub(home, folder / "hub.log")
    hub.run("up", **environ)
    try:
        wait_until(lambda: RUNNING in hub.text or not hub.is_running())
        if not hub.is_running():
            raise ChildProcessError(f"The hub does not start:\n{hub.text[-2000:]}")
        yield hub
    finally:
        hub.end()
        embedded_postgres.stop(home)


def soak(endpoint: Endpoint, stood: stage.Stage, folder: Path, plan: Plan) -> None:
    """Its journals are in `folder`."""
    model = Model()
    endpoint.responds(model)
    with _up(stood.home, folder, {**stage.SETTINGS, "OPENAI_BASE_URL": endpoint.url, **stood.clock.environ}) as hub:
        taught = [person.user_id for person in MAKING[:2]]
        keys = stage.make_keys(stood.home, (AGENT.tenant, AGENT.user_id), taught)
        before = Caller(hub.port, keys.tenants[HEAVY.tenant], Journal(folder, "before", time.monotonic()))
        heavy.seed(before, HEAVY)
        one = Soak(folder, hub, keys, plan)
        model.journal = one.journal("model")
        rig = faults.Rig(hub, model, stood.disk, stood.clock)
        one.use(lambda: faults.carry_out(rig, plan.seed, until=plan.seconds, journal=one.log))
        one.close()
        one.look()
