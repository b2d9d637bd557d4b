"""The result of a user's assignor as plain values, of any types and any size.

Reading stops at the first value of another kind, and beyond the largest result that Redis and members carry. `check`
then compares the values with the members.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn, TypeVar

from coordinator.assignment.assignors.assignor import Assignment, Subscriber
from coordinator.errors import InvalidAssignmentError
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

T = TypeVar("T")
RANGES, RANGES_OF_A_PARTITION = 10_000, 16
_REMEDY = "fix the assignor, or choose another one"


def plain(result: object, members: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    """The assignment in `result`; raises `InvalidAssignmentError`, or an error of the result itself."""
    count = sum(partitions.values())
    ranges = _Limit("hash ranges", RANGES + RANGES_OF_A_PARTITION * count)
    entries = _Limit("entries", (len(members) + 1) * (count + 1))
    return {
        _is_a(str, member): {
            _partition(tp): tuple(_range(h) for h in ranges.of(_iterable(hashes)))
            for tp, hashes in entries.of(_mapping(owned).items())
        }
        for member, owned in entries.of(_mapping(result).items())
    }


class _Limit:
    """Counts values, and refuses one too many."""

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most, self._left = what, most, most

    def of(self, values: Iterable[T]) -> Iterator[T]:
        for value in values:
            self._left -= 1
            if self._left < 0:
                raise InvalidAssignmentError(f"the assignment has more than {self._most} {self._what}", _REMEDY)
            yield value


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, Mapping) else _refuse(value, "Mapping")


def _iterable(value: object) -> Iterable[object]:
    return value if isinstance(value, Iterable) else _refuse(value, "Iterable")


def _is_a(kind: type[T], value: object) -> T:
    return value if isinstance(value, kind) else _refuse(value, kind.__name__)


def _refuse(value: object, wanted: str) -> NoReturn:
    raise InvalidAssignmentError(f"the assignment holds a value of type {type(value).__name__}, not {wanted}", _REMEDY)


def _partition(value: object) -> TopicPartition:
    tp = _is_a(TopicPartition, value)
    return TopicPartition(_is_a(str, tp.topic), int(_is_a(int, tp.partition)))


def _range(value: object) -> HashRange:
    hashes = _is_a(HashRange, value)
    return HashRange(int(_is_a(int, hashes.lo)), int(_is_a(int, hashes.hi)))
