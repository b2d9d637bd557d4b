"""The kinds of option value that are JSON: offsets, timestamps and assignments by topic and partition.

Stricter than Spark's where Spark silently changes the meaning: a fraction, null, a number beyond 64 bits, a partition
twice, text after the JSON.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from coordinator.errors.quoting import VALUE, bounded
from coordinator.values.hash_map import overlap
from coordinator.values.offset_spec import EARLIEST, AtOffsets, Earliest, Latest
from coordinator.values.option_kinds import INT, LONG
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import Assigned, TopicPartition
from spark_coop_source.options.text_values import check_topic


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{short(name)} occurs twice")
        found[name] = value
    return found


def short(value: object) -> str:
    """A JSON value for a message."""
    return bounded(json.dumps(value), VALUE)


def _number(digits: str) -> int:
    if len(digits) > len(str(-LONG)):
        raise ValueError(f"the number {bounded(digits, VALUE)} has more than 64 bits")
    return int(digits)


def json_of(text: str) -> object:
    """The value of a JSON text; a `ValueError` names the fault."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error})") from None
    except RecursionError:
        raise ValueError("not JSON (nested too deeply)") from None


def _topics(text: str) -> dict[str, object]:
    value = json_of(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return {check_topic(name): partitions for name, partitions in value.items()}


def _integer(value: object, least: int, most: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} {short(value)} is not a whole number")
    if not least <= value <= most:
        raise ValueError(f"{what} {value} is not within {least} to {most}")
    return value


def _partition(text: str) -> int:
    if not re.fullmatch("0|[1-9][0-9]{0,9}", text):
        raise ValueError(f"{short(text)} is not the number of a partition")
    return _integer(int(text), 0, INT, "partition")


def _partitions(topics: dict[str, object]) -> Iterator[tuple[TopicPartition, object]]:
    for topic, values in topics.items():
        if not isinstance(values, dict):
            raise ValueError(f"the value of {topic!r} is not an object with partitions")
        for partition, value in values.items():
            yield TopicPartition(topic, _partition(partition)), value


def _numbers(text: str, check: Callable[[object], int]) -> dict[TopicPartition, int]:
    return {partition: check(value) for partition, value in _partitions(_topics(text))}


@dataclass(frozen=True, slots=True)
class OffsetsText:
    """`earliest`, `latest`, or an offset for each partition, -1 being the latest and -2 the earliest."""

    limit: str = 'earliest, latest or JSON with an offset for each partition, for example {"orders":{"0":23,"1":-2}}'

    def parse(self, text: str) -> Earliest | Latest | AtOffsets:
        """The parsed value. Words may have any case."""
        word = text.strip().lower()
        if word in ("earliest", "latest"):
            return Earliest() if word == "earliest" else Latest()
        return AtOffsets(_numbers(text, lambda offset: _integer(offset, EARLIEST, LONG, "offset")))


@dataclass(frozen=True, slots=True)
class TimestampsText:
    """A time for each partition, in milliseconds since 1970."""

    limit: str = 'JSON with a time in milliseconds for each partition, for example {"orders":{"0":1700000000000}}'

    def parse(self, text: str) -> dict[TopicPartition, int]:
        """The times."""
        return _numbers(text, lambda timestamp: _integer(timestamp, 0, LONG, "timestamp"))


@dataclass(frozen=True, slots=True)
class AssignmentText:
    """Fixed partitions: Spark's form, or ours with the key ranges of each."""

    limit: str = (
        'JSON with partitions, {"orders":[0,1]}, or with the key ranges of each, '
        '{"orders":{"0":[[0,4611686018427387903]],"1":[]}}, where an empty list is the whole partition'
    )

    def parse(self, text: str) -> Assigned:
        """The partitions with their hash ranges, ascending."""
        found: dict[TopicPartition, tuple[HashRange, ...]] = {}
        topics = _topics(text)
        for topic, value in topics.items():
            found |= _listed(topic, value) if isinstance(value, list) else _ranged(topic, value)
        if not found:
            raise ValueError("it names no partition")
        return Assigned(found, pinned=any(not isinstance(value, list) for value in topics.values()))


def _listed(topic: str, partitions: list[object]) -> dict[TopicPartition, tuple[HashRange, ...]]:
    numbers = [_integer(partition, 0, INT, "partition") for partition in partitions]
    return {TopicPartition(topic, number): (WHOLE,) for number in numbers}


def _ranged(topic: str, value: object) -> dict[TopicPartition, tuple[HashRange, ...]]:
    return {partition: _ranges(partition, ranges) for partition, ranges in _partitions({topic: value})}


def _ranges(partition: TopicPartition, value: object) -> tuple[HashRange, ...]:
    if not isinstance(value, list):
        raise ValueError(f"the key ranges of {partition} are not a list")
    return hash_ranges(value, f" of {partition}") or (WHOLE,)


def hash_ranges(value: Iterable[object], whose: str = "") -> tuple[HashRange, ...]:
    """The key ranges of a JSON list of [lo,hi], ascending. `whose` names their owner in messages."""
    ranges = sorted(_range(pair) for pair in value)
    if wrong := overlap(ranges):
        (lo, hi), (its_lo, its_hi) = wrong
        raise ValueError(f"[{lo},{hi}] and [{its_lo},{its_hi}]{whose} overlap")
    return tuple(ranges)


def _range(pair: object) -> HashRange:
    if not isinstance(pair, list) or len(pair) != len(("lo", "hi")):
        raise ValueError(f"{short(pair)} is not a key range [lo,hi]")
    lo, hi = (_integer(bound, 0, HASH_MAX, "hash") for bound in pair)
    if lo > hi:
        raise ValueError(f"the key range [{lo},{hi}] is inverted")
    return HashRange(lo, hi)
