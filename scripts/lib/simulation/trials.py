"""How often the slices of lost members are read in small pieces (rule: struck-lane-apart).

strike 1      |==============================|    one batch may read all of it
strike 2      |=====|=====|=====|=====|=====|     a batch may read a 32nd of it
a crawl       |=|=|=|=|=|=|=|=|=|=|=|=|=|=|=|     other limits make some pieces smaller, never most of them
"""

from collections.abc import Iterable
from math import ceil

from coordinator.plan.poison import Strike
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.subscription import TopicPartition
from simulation.kafka import HASHES
from simulation.sink import Violation
from simulation.state import State

WIDELY = 1_000
"""A strike of so many offsets is wide. Limits of a batch that count single offsets cut only smaller ones in pieces."""

_PARTS = 32
MOST_SMALL = 6
"""Most small pieces of one strike: other limits of a batch cut these."""


class Trials:
    """When each strike was first seen, and the small pieces that batches have read of it."""

    def __init__(self) -> None:
        self.struck_at: dict[Strike, int] = {}
        self._small: dict[tuple[Strike, int], set[int]] = {}  # of a hash: the positions where small pieces began

    def planned(self, end: StreamOffset, struck: Iterable[Strike], before: State) -> None:
        """Note a plan; raises `Violation` if members crawl over a strike."""
        struck = list(struck)
        for strike in (s for s in struck if len(s.offsets) >= WIDELY and not s.parked):
            for lane in end.lanes.get(strike.tp, ()):
                if all(_is_small(lane, s) for s in (strike, *_over(lane, strike.tp, struck))):
                    for key_hash in (h for h in HASHES if h in lane.hashes and h in strike.hashes):
                        self._note(strike, key_hash, before.at_hash(strike.tp, key_hash))

    def _note(self, strike: Strike, key_hash: int, position: int) -> None:
        """A position that comes twice is no progress: a batch was planned again after a crash."""
        small = self._small.setdefault((strike, key_hash), set())
        small.add(position)
        if len(small) > MOST_SMALL:
            raise Violation(f"CRAWL: {strike} is read in small pieces, from {sorted(small)} on")


def _over(lane: Lane, tp: TopicPartition, struck: Iterable[Strike]) -> list[Strike]:
    """All strikes over the lane's next record: the narrowest of them may ask for smaller pieces than the others."""
    over = [s for s in struck if s.tp == tp and s.hashes.intersection(lane.hashes)]
    return [s for s in over if s.offsets.start <= lane.position < s.offsets.until]


def _is_small(lane: Lane, strike: Strike) -> bool:
    """Whether a batch reads less of a strike than it may. The rule is said again here: the code may have it wrong."""
    start, until = strike.offsets.start, strike.offsets.until
    most = until - start if strike.count == 1 else ceil((until - start) / _PARTS)
    return bool(lane.offsets) and start <= lane.position and lane.until < min(until, lane.position + most)
