"""The plan of an operator's reset, with the targets of Kafka's own tool. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from coordinator.errors import ConflictingOptionsError, InvalidOptionError, UnknownTopicError
from coordinator.redis.group_state import GroupState, KnownTopic
from coordinator.tools.fields import Clipped, Means, PartitionNumber, TopicField
from coordinator.values.offset_spec import AtTimestamp, Earliest, Latest
from coordinator.values.subscription import Bounds, Topic, TopicPartition


@dataclass(frozen=True, slots=True)
class ToOffset:
    """One offset for every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """A number of offsets after the stable offset; before it if negative."""

    offsets: int


Target = Earliest | Latest | AtTimestamp | ToOffset | ShiftBy
ChosenPartitions = Mapping[str, frozenset[int] | None]
"""Topic -> partitions, None for all its partitions."""


@dataclass(frozen=True, slots=True)
class PartitionReset:
    """The reset of one partition: all its positions become `after`."""

    topic: TopicField
    partition: PartitionNumber
    before: Annotated[int, Means("Stable offset before.", "STABLE, WAS")]
    after: Annotated[int, Means("All its positions after.", "RESET TO, IS NOW")]
    clipped: Clipped

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)


def chosen(texts: Iterable[str]) -> ChosenPartitions:
    """The topics of texts such as `orders` or `orders:0,1`; raises `InvalidOptionError`."""
    found: dict[str, frozenset[int] | None] = {}
    for text in texts:
        match = re.fullmatch(r"([A-Za-z0-9._-]{1,249})(?::([0-9]{1,9}(?:,[0-9]{1,9})*))?", text)
        if match is None:
            raise _no_partition(text)
        before = found.get(match[1], frozenset())
        numbers = map(int, match[2].split(",")) if match[2] else None
        found[match[1]] = None if numbers is None or before is None else before.union(numbers)
    return found


def one_partition(text: str) -> TopicPartition:
    """The partition of a text such as `orders:0`; raises `InvalidOptionError`."""
    ((topic, numbers),) = chosen([text]).items()
    if numbers is None or len(numbers) > 1:
        raise _no_partition(text)
    return TopicPartition(topic, *numbers)


def _no_partition(text: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"{text[:80]!r} is not TOPIC:PARTITION", "pass orders:0; --topic also takes orders, and orders:0,1"
    )


def partitions_of(
    wanted: ChosenPartitions | None, state: GroupState, topics: Mapping[str, Topic]
) -> tuple[TopicPartition, ...]:
    """The partitions to move: those with positions; of a topic that was created again, all that it has now.

    `wanted` is None for all topics of the group; `topics` are those of them that Kafka has. Raises
    `UnknownTopicError` for a topic or partition that the group or Kafka lacks.
    """
    known = sorted(state.segments)
    found: list[TopicPartition] = []
    for name, numbers in (dict.fromkeys(tp.topic for tp in known) if wanted is None else wanted).items():
        placed = [tp for tp in known if tp.topic == name]
        _must_be_known(name, numbers, placed, topics)
        if recreated(state, topics[name]):
            if numbers is not None:
                raise ConflictingOptionsError(
                    f"topic {name!r} was deleted and created again since the group read it",
                    f"reset the whole topic: --topic {name}",
                )
            placed = [TopicPartition(name, p) for p in topics[name].partitions]
        found += [tp for tp in placed if numbers is None or tp.partition in numbers]
    return tuple(found)


def recreated(state: GroupState, topic: Topic) -> bool:
    """Whether the topic was deleted and created again since the group read it."""
    return topic.name in state.topics and state.topics[topic.name].id != topic.id


def _must_be_known(
    name: str, numbers: frozenset[int] | None, placed: list[TopicPartition], topics: Mapping[str, Topic]
) -> None:
    missing = {TopicPartition(name, p) for p in numbers or ()} - set(placed)
    if not placed or missing:
        raise UnknownTopicError(
            f"the group has no position in {', '.join(map(str, sorted(missing))) or name}",
            "look at its partitions with coop-kafka describe GROUP; startingOffsets decides where a new topic begins",
        )
    if name not in topics:
        raise UnknownTopicError(f"Kafka has no topic {name!r}", "name the other topics by --topic")


def moves(
    target: Target,
    partitions: Iterable[TopicPartition],
    state: GroupState,
    bounds: Mapping[TopicPartition, Bounds],
    by_time: Mapping[TopicPartition, int],
) -> tuple[PartitionReset, ...]:
    """The move of each partition; `by_time` are the offsets of an `AtTimestamp`."""

    def wish(tp: TopicPartition) -> int:
        match target:
            case Earliest():
                return bounds[tp].beginning
            case Latest():
                return bounds[tp].end
            case AtTimestamp():
                return by_time[tp]
            case ToOffset(offset):
                return offset
            case ShiftBy(offsets):
                return state.stable.get(tp, 0) + offsets

    def move(tp: TopicPartition, wished: int) -> PartitionReset:
        after = min(max(wished, bounds[tp].beginning), bounds[tp].end)
        return PartitionReset(tp.topic, tp.partition, state.stable.get(tp, 0), after, after != wished)

    return tuple(move(tp, wish(tp)) for tp in partitions)


def known_after(
    state: GroupState, moved: Iterable[PartitionReset], topics: Mapping[str, Topic]
) -> dict[str, KnownTopic]:
    """The topics as the group records them after a reset: those that were created again, by their new ids."""
    new = (topics[name] for name in {m.topic for m in moved} if recreated(state, topics[name]))
    return {**state.topics, **{t.name: KnownTopic(t.id, len(t.partitions)) for t in new}}
