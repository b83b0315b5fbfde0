"""The conversations of the demo."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoFact:
    """A fact and the turn (1, 2, …) that it rests on. Confidence and importance are 0..1."""

    content: str
    category: str
    turn: int
    quote: str
    key: str = ""
    confidence: float = 0.95
    importance: float = 0.6
    source_error: str = ""


@dataclass(frozen=True)
class DemoEpisode:
    """An episode and its range of turns (1, 2, …). Importance is 0..1."""

    first: int
    last: int
    summary: str
    importance: float
    key_topics: tuple[str, ...] = ()
    actions_taken: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DemoConversation:
    session_id: str
    agent_id: str
    days_ago: int
    turns: tuple[tuple[str, str], ...]
    statements: tuple[DemoFact, ...]
    episodes: tuple[DemoEpisode, ...]


PROFILE = {
    "work_context": "Data engineer at a logistics start-up in Hangzhou; owns the shipment-tracking pipeline (Python, "
    "Airflow, PostgreSQL) and mentors two juniors.",
    "personal_context": "Speaks Mandarin and English, prefers short answers with an example. 喜欢徒步和手冲咖啡。",
    "top_of_mind": "Moving the pipeline to event streaming before the November sales peak; 准备半程马拉松。",
    "recent_months": "Rebuilt the nightly import so that late files no longer block it, and started running again "
    "after a knee injury.",
}

# Path → the text of a memory file that the agent wrote.
FILES = {
    "/USER.md": "# Lin Wei\n\n- Data engineer, Hangzhou, a team of three.\n- Short answers, with one example.\n",
    "/memories/pipeline.md": "# Shipment tracking\n\nRuns on Airflow and PostgreSQL. Lin Wei wants to stream it before "
    "the November peak.\n",
}
# The file that a dream changed, and what it added.
LEARNED = ("/USER.md", "- Turned Kafka down: too big for three people. Logical replication was taken up.\n")
# Days ago, topic and text of what the agent noted for itself.
DIARY = (
    (12, "tone", "Suggested Kafka too fast. Ask for the size of the team before naming a tool."),
    (11, "follow-up", "Ask whether logical replication held under the load of the nightly import."),
)
# Subject, relation, object, and for how many days it has held.
TRIPLES = (
    ("Lin Wei", "works_on", "shipment tracking pipeline", 400),
    ("shipment tracking pipeline", "runs_on", "PostgreSQL", 400),
    ("shipment tracking pipeline", "runs_on", "Airflow", 400),
    ("Lin Wei", "lives_in", "杭州", 300),
    ("Lin Wei", "trains_for", "半程马拉松", 60),
)
GROUP = (
    "Shipment tracking team",
    ("The team freezes the pipeline from 1 November on", "Stand-up is at 9:30, in Chinese"),
)
# Labels below the person's namespace, key and value of items of the store.
STORED = (
    ((), "editor", {"text": "Uses Neovim with ruff.", "since": "2025"}),
    (("runs",), "last", {"text": "Ran 12 km along West Lake.", "km": 12}),
)

CONVERSATIONS = (
    DemoConversation(
        session_id="pipeline-review",
        agent_id="support",
        days_ago=12,
        turns=(
            ("user", "Hi! I'm Lin Wei, I work as a data engineer at a logistics company."),
            ("assistant", "Nice to meet you, Lin Wei. What are you working on?"),
            ("user", ("Our shipment tracking pipeline. It runs on Airflow and PostgreSQL, and I want to move it to "
                     "streaming before the November peak.")),
            ("assistant", "That is a good plan. Would Kafka suit your team?"),
            ("user", ("No, that's wrong for us: we are three people. Please never suggest tools that need their own "
                     "cluster.")),
            ("assistant", "Understood, nothing that needs its own cluster. PostgreSQL's logical replication might do."),
            ("user", ("Better. And keep answers short, with one example. I'm allergic to peanuts, by the way, so no "
                     "satay for the team dinner!")),
            ("assistant", "Short, one example, and no peanuts. Noted."),
        ),
        statements=(
            DemoFact("Works as a data engineer at a logistics company", "identity", 1,
                      "I work as a data engineer at a logistics company", key="occupation", importance=0.8),
            DemoFact("Wants to move the shipment tracking pipeline to streaming before the November peak", "goal", 3,
                      "I want to move it to streaming before the November peak", key="current_goal"),
            DemoFact("Never suggest tools that need their own cluster: the team is three people", "correction", 5,
                      "Please never suggest tools that need their own cluster", importance=0.9,
                      source_error="Kafka was suggested to a team of three"),
            DemoFact("Prefers short answers with one example", "preference", 7,
                      "keep answers short, with one example", key="answer_style", importance=0.8),
            DemoFact("Allergic to peanuts", "constraint", 7, "I'm allergic to peanuts", key="allergy",
                      confidence=0.98, importance=1.0),
            DemoFact("Could use PostgreSQL's logical replication for streaming", "knowledge", 6,
                      "PostgreSQL's logical replication might do", confidence=0.75, importance=0.4),
        ),
        episodes=(
            DemoEpisode(1, 4, "Told of the shipment tracking pipeline, and of the plan to stream it before November",
                      0.7, key_topics=("shipment tracking", "event streaming"), actions_taken=("Suggested Kafka",)),
            DemoEpisode(5, 8, "Kafka was turned down as too big for a team of three; logical replication was taken up "
                      "instead", 0.8, key_topics=("Kafka", "logical replication", "team dinner"),
                      actions_taken=("Suggested logical replication",),
                      outcomes=("Nothing that needs its own cluster", "Short answers with one example")),
        ),
    ),
    DemoConversation(
        session_id="周末计划",
        agent_id="companion",
        days_ago=3,
        turns=(
            ("user", "最近在准备半程马拉松，膝盖恢复得不错。"),
            ("assistant", "太好了！训练计划需要我帮你排一下吗？"),
            ("user", "好呀。我一般早上六点跑步，周末喜欢去徒步。"),
            ("assistant", "那周末可以把长跑换成徒步，让膝盖轻松一些。"),
            ("user", "我住在杭州，去年从上海搬过来的。今天有点累。"),
            ("assistant", "今天就好好休息，明早再跑。"),
            ("user", "我喜欢手冲咖啡，跑完步一定要来一杯。"),
            ("assistant", "跑后补水之后再喝，会更舒服。"),
        ),
        statements=(
            DemoFact("正在准备半程马拉松", "goal", 1, "最近在准备半程马拉松", key="training_goal"),
            DemoFact("一般早上六点跑步", "behavior", 3, "我一般早上六点跑步", key="running_time", importance=0.5),
            DemoFact("周末喜欢徒步", "preference", 3, "周末喜欢去徒步", key="weekend"),
            DemoFact("住在杭州，去年从上海搬来", "context", 5, "我住在杭州，去年从上海搬过来的", key="home_city"),
            DemoFact("今天有点累", "context", 5, "今天有点累", key="current_mood", confidence=0.8, importance=0.3),
            DemoFact("喜欢手冲咖啡，跑完步要喝一杯", "preference", 7, "我喜欢手冲咖啡", key="coffee", importance=0.5),
        ),
        episodes=(
            DemoEpisode(1, 8, "聊了半程马拉松的准备：膝盖恢复得不错，周末用徒步代替长跑，当天先休息", 0.6,
                      key_topics=("半程马拉松", "膝盖", "徒步"), actions_taken=("建议周末以徒步代替长跑",),
                      outcomes=("当天休息，第二天早上再跑",)),
        ),
    ),
)  # fmt: skip
