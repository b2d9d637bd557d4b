"""Kafka in memory: topics that grow, and Kafka's own group; each driver sees it through a `SimulatedLog`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from coordinator.key_hash import hash_key, hash_record
from coordinator.offset_spec import Earliest, Latest, OffsetSpec
from coordinator.slices import Slice
from coordinator.subscription import Bounds, Subscription, Topic, TopicPartition

TOPIC = "orders"


def _spread_keys(count: int) -> tuple[bytes, ...]:
    """Keys whose hashes lie about evenly in the hash space, so that every cut parts some of them."""
    candidates = sorted((b"key-%d" % i for i in range(64)), key=hash_key)
    return (b"", *(candidates[i * len(candidates) // (count - 1)] for i in range(count - 1)))


KEYS = _spread_keys(7)


@dataclass(frozen=True, slots=True, order=True)
class Record:
    """A record and the point it is on the plane; `key` is None where it has no order."""

    tp: TopicPartition
    offset: int
    hash: int = field(compare=False)
    key: bytes | None = field(compare=False)

    def __str__(self) -> str:
        return f"{self.tp.partition}:{self.offset}({KEYS.index(self.key) if self.key is not None else '-'})"


class SimulatedKafka:
    """One topic's logs, and what Kafka's own group has committed."""

    def __init__(self, partitions: int) -> None:
        self.logs: dict[TopicPartition, list[Record]] = {}
        self.group_offsets: dict[TopicPartition, tuple[int, str]] = {}
        for _ in range(partitions):
            self.add_partition()

    def add_partition(self) -> None:
        """The topic grows."""
        self.logs[TopicPartition(TOPIC, len(self.logs))] = []

    def produce(self, tp: TopicPartition, key: bytes | None) -> None:
        """Append one record."""
        log = self.logs[tp]
        log.append(Record(tp, len(log), hash_record(key, len(log)), key))

    def read(self, wanted: Slice) -> list[Record]:
        """The records of a slice, in offset order."""
        log = self.logs[wanted.topic_partition]
        return [r for r in log[wanted.offsets.start : wanted.offsets.until] if r.hash in wanted.hashes]

    def ends(self) -> dict[TopicPartition, int]:
        """The end of each log."""
        return {tp: len(log) for tp, log in self.logs.items()}


class SimulatedLog:
    """`coordinator.ports.Log` over those logs; every call is a scheduling point."""

    def __init__(self, kafka: SimulatedKafka, turn: Callable[[], None]) -> None:
        self._kafka, self._turn = kafka, turn

    def topics(self, _: Subscription) -> dict[str, Topic]:
        """The one topic with its partitions."""
        self._turn()
        return {TOPIC: Topic(TOPIC, "id-1", tuple(tp.partition for tp in self._kafka.logs))}

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Beginning and end of each log."""
        self._turn()
        return {tp: Bounds(0, len(self._kafka.logs[tp])) for tp in partitions}

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first or the last offset."""
        self._turn()
        match spec:
            case Earliest():
                return dict.fromkeys(partitions, 0)
            case Latest():
                return {tp: len(self._kafka.logs[tp]) for tp in partitions}
        raise NotImplementedError(f"the simulation does not start at {spec}")

    def group_offsets(self, _: str) -> dict[TopicPartition, tuple[int, str]]:
        """What the mirror holds."""
        self._turn()
        return dict(self._kafka.group_offsets)

    def commit_group_offsets(self, _: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> bool:
        """Write the mirror."""
        self._turn()
        self._kafka.group_offsets |= offsets
        return True

    def close(self) -> None:
        """There is nothing to close."""
