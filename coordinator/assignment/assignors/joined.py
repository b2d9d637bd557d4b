"""The assignor of the option `copartition`: its topics get the same cuts and owners (rule: joined-topics).

Its name holds the topics. So the members of a group agree on the topics as they agree on an assignor, and a member with
other topics is refused.

An owner is a Spark query: its member, or the members of its reads if each reads some of the topics. `grouped` assigns
one of the topics to owners, and each other topic follows. It assigns the topics that are not joined too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, ordered
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

_Given = dict[str, dict[TopicPartition, tuple[HashRange, ...]]]
_Owners = dict[str, list[Subscriber]]


def equal_counts(topics: Sequence[str], counts: Mapping[str, int]) -> dict[str, int]:
    """The numbers of partitions; of these topics the smallest. Members record the growth of one after the other."""
    least = min((counts[topic] for topic in topics if topic in counts), default=0)
    return {topic: least if topic in topics else count for topic, count in counts.items()}


class Joined:
    """The assignor for these topics."""

    version = 1

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(sorted(topics))
        self.name = "copartition=" + "+".join(self.topics)

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`); the same again if `previous` is its own for the same input."""
        owners = self._owners(members)
        topics = [t for t in self._read(members) if partitions.get(t)]
        if not owners or len({partitions[t] for t in topics}) != 1:
            return Grouped().assign(members, partitions, previous)
        others = [replace(m, topics=m.topics.difference(self.topics)) for m in members]
        given: _Given = {m: dict(owned) for m, owned in Grouped().assign(others, partitions, previous).items()}
        for owner, owned in _assigned(owners, topics, partitions[topics[0]], previous).items():
            for topic in topics:
                reader = next(m.member for m in owners[owner] if topic in m.topics)
                given[reader] |= {TopicPartition(topic, tp.partition): hashes for tp, hashes in owned.items()}
        return given

    def _owners(self, members: Sequence[Subscriber]) -> _Owners:
        """The owners that read all of the joined topics that any member reads, each with its members."""
        found: _Owners = {}
        for m in ordered(members):
            if not m.topics.isdisjoint(self.topics):
                found.setdefault(m.metadata.get("query") or m.member, []).append(m)
        wanted = self._read(members)
        return {owner: of for owner, of in found.items() if self._read(of) == wanted}

    def _read(self, members: Sequence[Subscriber]) -> list[str]:
        return [t for t in self.topics if any(t in m.topics for m in members)]


def _assigned(owners: _Owners, topics: Sequence[str], count: int, previous: Assignment) -> Assignment:
    """Each owner's ranges of one topic: the topic of which most was assigned before, so that least moves."""
    before = {topic: _before(topic, owners, previous) for topic in topics}
    model = max(topics, key=lambda t: sum(h.size for owned in before[t].values() for r in owned.values() for h in r))
    some = [
        Subscriber(owner, min(m.capacity for m in of), frozenset({model}), all(m.sharing for m in of))
        for owner, of in owners.items()
    ]
    return Grouped().assign(some, {model: count}, before[model])


def _before(topic: str, owners: _Owners, previous: Assignment) -> Assignment:
    """The earlier ranges of a topic, by owner."""
    return {
        owner: {tp: h for m in of for tp, h in previous.get(m.member, {}).items() if tp.topic == topic}
        for owner, of in owners.items()
    }
