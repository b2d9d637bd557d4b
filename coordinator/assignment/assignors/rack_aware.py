"""As `grouped`, and members prefer the partitions whose leader is in their rack (as in KIP-881).

    1. Within each rack, `grouped` assigns the partitions that its brokers lead to the members of that rack: the wish.
    2. `grouped` assigns everything, with the wish in place of the previous assignment.

So capacity decides the amount of each member, and the rack only which partitions it gets. If the wish brings no more
key hashes into their racks than `grouped` alone, `grouped` decides: it moves less.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coordinator.assignment.assignors.assignor import Assignment, Subscriber, subscribers, topic_partitions
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.values.subscription import TopicPartition

RACK_FIELDS = ("rack", "label.rack", "label.zone")
"""The fields of a member that name its rack; the first one that is set counts."""

Racks = Mapping[TopicPartition, str]
"""The rack of each partition's leader; none where the broker names none."""

_Numbers = Mapping[TopicPartition, TopicPartition]


@dataclass(frozen=True, slots=True)
class RackAware:
    """`grouped`, with a preference for the leader's rack."""

    racks: Racks = field(default_factory=dict)
    name = "rack-aware"
    version = 1

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """The assignment (see `Assignor.assign`)."""
        alone = Grouped().assign(members, partitions, previous)
        wish = _wish(members, _led_by_mates(self.racks, members, partitions), previous)
        near = Grouped().assign(members, partitions, wish)
        return max(alone, near, key=lambda assignment: hashes_at_home(assignment, members, self.racks))


def rack_of(member: Subscriber) -> str:
    """The member's rack; empty if it names none."""
    return next((member.metadata[name] for name in RACK_FIELDS if member.metadata.get(name)), "")


def hashes_at_home(assignment: Assignment, members: Sequence[Subscriber], racks: Racks) -> int:
    """The number of key hashes whose member is in the rack of their partition's leader."""
    rack = {m.member: rack_of(m) for m in members}
    return sum(
        h.size
        for member, owned in assignment.items()
        for tp, ranges in owned.items()
        if rack[member] and rack[member] == racks.get(tp)
        for h in ranges
    )


def _led_by_mates(racks: Racks, members: Sequence[Subscriber], partitions: Mapping[str, int]) -> _Numbers:
    """Partitions whose leader's rack has a subscriber, each with its number in a topic of that rack alone."""
    numbers: dict[TopicPartition, TopicPartition] = {}
    for topic, of_topic in subscribers(members).items():
        homes, count = {rack_of(m) for m in of_topic} - {""}, dict[str, int]()
        for tp in topic_partitions(topic, partitions.get(topic, 0)):
            if (rack := racks.get(tp, "")) in homes:
                numbers[tp] = TopicPartition(_of_rack(topic, rack), count.get(rack, 0))
                count[rack] = numbers[tp].partition + 1
    return numbers


def _of_rack(topic: str, rack: str) -> str:
    """The name of the topic that stands for the partitions of a topic that a rack leads."""
    return f"{topic}\n{rack}"


def _wish(members: Sequence[Subscriber], numbers: _Numbers, previous: Assignment) -> Assignment:
    """The previous assignment, with the partitions in `numbers` assigned within their racks."""
    counts: dict[str, int] = {}
    for number in numbers.values():
        counts[number.topic] = max(counts.get(number.topic, 0), number.partition + 1)
    mates = [replace(m, topics=frozenset(_at_home(m)) & counts.keys()) for m in members]
    before = {m: {numbers[tp]: r for tp, r in owned.items() if tp in numbers} for m, owned in previous.items()}
    assigned, partition_of = Grouped().assign(mates, counts, before), {number: tp for tp, number in numbers.items()}
    wish = {m: {tp: r for tp, r in owned.items() if tp not in numbers} for m, owned in previous.items()}
    for member, owned in assigned.items():
        wish.setdefault(member, {}).update({partition_of[number]: r for number, r in owned.items()})
    return wish


def _at_home(member: Subscriber) -> Iterator[str]:
    return (_of_rack(topic, rack_of(member)) for topic in member.topics)
