"""The constants of the scoring, each with its reason; found by measuring (docs/retrieval.md); pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constants:
    """What weighs how much. All are numbers without a unit unless said otherwise."""

    # Vectors: how many of a person's vectors the frozen mean weighs as much as.
    prior: float = 200.0
    # The same for a model without frozen means: pulled towards zero, that is, not centred, while there are few.
    prior_unknown: float = 50.0
    # Words: how soon repeating a term stops to count (k1 of BM25).
    saturation: float = 1.2
    # How much length counts (b of BM25) and the length in tokens that counts neither way: fixed, not the
    # average, so that a score does not depend on what else a person has said.
    turn_slope: float = 0.5
    turn_pivot: float = 20.0
    window_slope: float = 0.75
    window_pivot: float = 100.0
    session_slope: float = 0.75
    session_pivot: float = 300.0
    # Turns before and after that are read with a turn: an answer often lacks the words of its question.
    reach: int = 2
    # What coverage stands in for nearness where a unit or the query has no vector, so that a turn that waits for its
    # vector can still be found among those that have theirs.
    unembedded: float = 0.8
    # Squared, so that one of many words found counts little and all of them found much.
    lexical: float = 2.0
    lexical_power: float = 2.0
    window: float = 0.3
    window_power: float = 1.5
    session: float = 0.5
    # With few sessions it tells little to be in the right one: the weight grows with their logarithm up to here.
    sessions_full: int = 20
    neighbour: float = 0.25
    # Where sessions run beside each other: what the hour, the day and the week of a turn hold of the query, whatever
    # the session, with a slope and pivots as above.
    hour: float = 2.0
    day: float = 1.0
    week: float = 1.0
    moment_slope: float = 0.75
    hour_pivot: float = 100.0
    day_pivot: float = 1_000.0
    week_pivot: float = 7_000.0
    # Turns that were said at a date which the query names, or so many days before and after it: one day because it
    # may be another day where it was said, seven because people tell of a day later. `date` is for facts and episodes.
    # What was said then gets twice as much in a list of turns, where a date is all that tells one evening from others.
    date: float = 0.3
    date_of_turn: float = 0.6
    # A single day among all days of a life tells more than a month or a year does.
    day_of_turn: float = 0.9
    date_before: float = 1.0
    date_after: float = 7.0
    # Sessions: what the turns after the best one add, as a share of the mean score of so many.
    others: float = 0.3
    others_counted: int = 3
    # Facts and episodes: the most that being sure, fresh or recent adds. A fact that answers scores 0.5 to 2.
    confidence: float = 0.08
    decay: float = 0.05
    recency: float = 0.03
    # Days.
    recency_half_life_days: float = 30.0


DEFAULT = Constants()
