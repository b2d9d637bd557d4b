"""Partition growth: the records of a key stay in order, whenever its producers see the growth (rule: growth-order)."""

from collections import defaultdict
from itertools import pairwise
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress.growth import Growth, Sight, ceilings, levels, remembered
from coordinator.values.key_hash import cuts
from coordinator.values.subscription import TopicPartition

P = tuple(TopicPartition("orders", i) for i in range(8))


# -- the oracle: producers switch when they like, hashes are read as far as they may ---------------


class _Record(NamedTuple):
    producer: int
    key: int
    partition: int
    known: int  # partitions, as its producer knew
    number: int  # in the order of writing


class _Topic:
    """Logs of a topic that grows by these counts, and the group; hashes are the cells of an even cut."""

    CELLS = tuple(cuts(4))
    KEYS = 24

    def __init__(self, random: Random, counts: tuple[int, ...], *, by_key: bool) -> None:
        self.random, self.counts, self.by_key = random, counts, by_key
        self.all_keys = by_key and all(after % before == 0 for before, after in pairwise(counts))
        self.logs: dict[TopicPartition, list[_Record]] = {tp: [] for tp in P[: counts[0]]}
        self.positions = {tp: [0] * len(self.CELLS) for tp in P[: counts[-1]]}
        self.learned = [counts[0]] * 3  # the count that each producer knows
        self.known = counts[0]  # the count that the group knows
        self.growths: list[Growth] = []
        self.sights: tuple[Sight, ...] = ()
        self.delivered: dict[tuple[int, int], list[_Record]] = defaultdict(list)
        self.written = 0

    @property
    def now(self) -> int:
        """The count of partitions."""
        return len(self.logs)

    # -- the topic and its producers ----------------------------------------------------------------

    def grow(self) -> None:
        """The next growth, if there is one."""
        for tp in P[self.now : min((c for c in self.counts if c > self.now), default=self.now)]:
            self.logs[tp] = []

    def learn(self) -> None:
        """One producer refreshes its metadata."""
        self.learned[self.random.randrange(3)] = self.now

    def produce(self, times: int = 3) -> None:
        for _ in range(times):
            producer, key = self.random.randrange(3), self.random.randrange(self.KEYS)
            count = self.learned[producer]
            partition = key % count if self.by_key else self.random.randrange(count)
            self.logs[P[partition]].append(_Record(producer, key, partition, count, self.written))
            self.written += 1

    def end_grace(self) -> None:
        """The grace of the oldest growth is over: each producer knows it, and the group records the ends."""
        i = next((i for i, g in enumerate(self.growths) if not g.ends), None)
        if i is None:
            return
        growth = self.growths[i]
        self.learned = [max(count, growth.new) for count in self.learned]
        ends = tuple(len(self.logs[tp]) for tp in growth.holding)
        self.growths[i] = Growth("orders", "id-1", growth.old, growth.new, 0, 1, ends)

    # -- the group ----------------------------------------------------------------------------------

    def look(self) -> None:
        if self.now > self.known:
            self.growths.append(Growth("orders", "id-1", self.known, self.now, 0, 1))
            self.known = self.now
        ends = {tp: len(log) for tp, log in self.logs.items()}
        self.produce(self.random.randrange(3))
        marks = {tp: len(self.logs[tp]) for g in self.growths for tp in g.holding}
        self.sights = remembered(self.sights, Sight(self.written, ends, marks))

    def read(self) -> None:
        """One hash of one partition goes on, as far as it may or less."""
        tp, cell = P[self.random.randrange(self.known)], self.random.randrange(4)
        position = self.positions[tp][cell]
        until = min(len(self.logs[tp]), self.ceiling(tp, cell))
        if until <= position:
            return
        until = self.random.randint(position + 1, until)
        for record in self.logs[tp][position:until]:
            if record.key // (self.KEYS // 4) == cell:
                self.deliver(record)
        self.positions[tp][cell] = until

    def ceiling(self, tp: TopicPartition, cell: int) -> int:
        positions = {P[i]: list(zip(self.CELLS, self.positions[P[i]], strict=True)) for i in range(self.known)}
        steps = [step for growth in self.growths for step in growth.steps if tp in step.newer]
        found = [ceilings(levels(step, positions, self.sights), tp, self.sights) for step in steps]
        of_cell = [of_step.within(self.CELLS[cell])[0][1] for of_step in found]
        return min((c for c in of_cell if c is not None), default=len(self.logs[tp]))

    def deliver(self, record: _Record) -> None:
        before = self.delivered[record.producer, record.key]
        late = [r for r in before if r.number > record.number and self.ordered(record, r)]
        assert not late, f"{record} comes after {late}, with {self.growths}"
        before.append(record)

    def ordered(self, earlier: _Record, later: _Record) -> bool:
        """The promise: the later record is in the same partition, or in one that its producer did not know before.

        The group must know of the growth, or the growths that it missed must move no key between older partitions.
        With such growths only, the order of all keys is promised.
        """
        if self.all_keys or earlier.partition == later.partition:
            return True
        seen = {self.counts[0], *(g.new for g in self.growths)}
        missed = [(g, c) for g in self.growths for c in self.counts if g.old < c < g.new]
        seen |= {c for g, c in missed if c % g.old == 0 and g.new % c == 0}
        return later.partition >= earlier.known and earlier.known in seen

    def everything_read(self) -> bool:
        return all(position == len(log) for tp, log in self.logs.items() for position in self.positions[tp])


MULTIPLES = [(1, 2), (1, 3), (2, 4), (2, 8), (3, 6), (1, 2, 4), (1, 4, 8), (1, 3, 6)]
OTHERS = [(2, 3), (3, 5), (4, 6), (2, 3, 4), (3, 4, 8), (2, 5, 7), (1, 2, 3, 4, 5)]


@given(st.integers(0, 2**32), st.sampled_from(MULTIPLES + OTHERS), st.booleans(), st.booleans())
def test_keys_of_new_partitions_stay_in_order_at_any_growth_whenever_producers_switch(
    seed: int, counts: tuple[int, ...], by_key: bool, missed: bool
) -> None:
    """By any partitioner; also where the group saw one growth of several that came one after the other."""
    topic = _Topic(Random(seed), counts, by_key=by_key)
    topic.produce(20)
    for _ in counts[2:] if missed else ():
        topic.grow()
        topic.learn()
        topic.learn()
        topic.produce(20)
    events = [topic.produce, topic.produce, topic.look, topic.look, topic.read, topic.read, topic.read, topic.learn]
    for _ in range(120):
        rarely = topic.random.random()
        (topic.grow if rarely < 0.05 else topic.end_grace if rarely < 0.07 else topic.random.choice(events))()
    while topic.now < counts[-1]:
        topic.grow()
    topic.look()
    for _ in topic.growths:
        topic.end_grace()
    topic.learned = [topic.now] * 3
    topic.look()
    for _ in range(10):
        topic.produce()
        topic.read()
    for _ in range(2_000):
        topic.read()
        if topic.everything_read():
            return
    raise AssertionError("it never ends")
