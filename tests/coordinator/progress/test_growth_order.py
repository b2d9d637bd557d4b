"""Partition growth: the records of a key stay in order, whenever its producers see the growth (rule: growth-order)."""

from collections import defaultdict
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from coordinator.key_hash import cuts
from coordinator.progress.growth import (
    Growth,
    Sight,
    ceilings,
    levels,
    remembered,
)
from coordinator.subscription import TopicPartition

P = tuple(TopicPartition("orders", i) for i in range(8))


# -- the oracle: producers switch when they like, hashes are read as far as they may ---------------


class _Topic:
    """Logs of a topic that grows from `old` to `new`; hashes are the cells of an even cut."""

    CELLS = tuple(cuts(4))
    KEYS = 24

    def __init__(self, random: Random, old: int, new: int) -> None:
        self.random, self.growth = random, Growth("orders", "id-1", old, new, 0, 1)
        self.logs: dict[TopicPartition, list[tuple[int, int, int]]] = {tp: [] for tp in P[:new]}
        self.positions = {tp: [0] * len(self.CELLS) for tp in P[:new]}
        self.counts = [old, old, old]  # of each producer's metadata
        self.sights: tuple[Sight, ...] = ()
        self.delivered: dict[tuple[int, int], int] = defaultdict(lambda: -1)
        self.written = 0

    def produce(self, times: int) -> None:
        for _ in range(times):
            producer, key = self.random.randrange(3), self.random.randrange(self.KEYS)
            self.logs[P[key % self.counts[producer]]].append((producer, key, self.written))
            self.written += 1

    def look(self) -> None:
        ends = {tp: len(log) for tp, log in self.logs.items()}
        self.produce(self.random.randrange(3))
        marks = {tp: len(self.logs[tp]) for tp in self.growth.holding}
        self.sights = remembered(self.sights, Sight(self.written, ends, marks))

    def read(self) -> None:
        """One hash of one partition goes on, as far as it may or less."""
        tp, cell = self.random.choice(list(self.logs)), self.random.randrange(4)
        position = self.positions[tp][cell]
        until = min(len(self.logs[tp]), self.ceiling(tp, cell))
        if until <= position:
            return
        until = self.random.randint(position + 1, until)
        for producer, key, written in self.logs[tp][position:until]:
            if key // (self.KEYS // 4) == cell:
                assert self.delivered[producer, key] < written, f"{key} of producer {producer} is out of order"
                self.delivered[producer, key] = written
        self.positions[tp][cell] = until

    def ceiling(self, tp: TopicPartition, cell: int) -> int:
        positions = {
            older: list(zip(self.CELLS, self.positions[older], strict=True)) for older in self.growth.holding
        }  # fmt: skip
        found = [
            [
                c
                for lo, c in ceilings(levels(step, positions, self.sights), tp, self.sights)
                if lo <= self.CELLS[cell].lo
            ][-1]
            for step in self.growth.steps
            if tp in step.newer
        ]
        return min((c for c in found if c is not None), default=len(self.logs[tp]))

    def everything_read(self) -> bool:
        return all(position == len(self.logs[tp]) for tp, of_tp in self.positions.items() for position in of_tp)


@given(
    st.integers(0, 2**32), st.sampled_from([(1, 2), (1, 3), (2, 4), (2, 8), (3, 6), (1, 2, 4), (1, 4, 8), (1, 3, 6)])
)
def test_each_producers_records_of_a_key_stay_in_order_whenever_it_switches(seed: int, counts: tuple[int, ...]) -> None:
    """Also where the group saw one growth of several that came one after the other."""
    random = Random(seed)
    old, new = counts[0], counts[-1]
    topic = _Topic(random, old, new)
    for known in counts[:-1]:
        topic.counts = [known if random.random() < 0.8 else before for before in topic.counts]
        topic.produce(20)
    for _ in range(60):
        random.choice([lambda: topic.produce(3), topic.look, topic.read, topic.read])()
        topic.counts = [
            min(c for c in (*counts, new) if c > count or c == new) if random.random() < 0.05 else count
            for count in topic.counts
        ]
    topic.counts = [new] * 3  # the grace is over
    topic.growth = Growth("orders", "id-1", old, new, 0, 1, tuple(len(topic.logs[tp]) for tp in topic.growth.holding))
    topic.look()
    for _ in range(10):
        topic.produce(3)
        topic.read()
    for _ in range(2_000):
        topic.read()
        if topic.everything_read():
            return
    raise AssertionError("it never ends")
