"""Record filters of a schedule: one for all members, or several, and an operator who changes from one to another.

Drivers that start have the filter of that moment. Few have another one, as after a mistake.
"""

from collections.abc import Iterable
from random import Random

from coordinator.values.key_hash import cuts
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from simulation.kafka import KEYS, Record

_PARTS = 4  # of the hash space: a filter by ranges keeps two
_BY_MISTAKE = 0.1


class Filters:
    """The filters of one schedule. It draws by itself, so that schedules without filters stay as they are."""

    def __init__(self, seed: int, *, may_change: bool) -> None:
        self._random = Random(f"filters {seed}")  # noqa: S311 - it must replay
        self._pool: tuple[RecordFilter, ...] = ()
        if self._random.random() < 0.25:
            changes = may_change and self._random.random() < 0.6
            others = (_drawn(self._random), self._random.choice((EVERYTHING, _drawn(self._random))))
            self._pool = (_drawn(self._random), *(others if changes else ()))
        self._of_digest = {f.digest: f for f in (EVERYTHING, *self._pool)}
        self.current = self._pool[0] if self._pool else EVERYTHING

    def __bool__(self) -> bool:
        """Whether drivers of this schedule have filters."""
        return bool(self._pool)

    @property
    def changes(self) -> bool:
        """Whether drivers of this schedule may have different filters."""
        return len(self._pool) > 1

    def change(self) -> None:
        """The operator chooses another filter for drivers that start from now on."""
        self.current = self._random.choice([f for f in self._pool if f != self.current] or self._pool)

    def drawn(self, *, quiet: bool) -> RecordFilter:
        """The filter of a driver that starts."""
        by_mistake = self.changes and not quiet and self._random.random() < _BY_MISTAKE
        return self._random.choice(self._pool) if by_mistake else self.current

    def kept(self, records: Iterable[Record], digest: str) -> list[Record]:
        """The records that the filter of this digest keeps."""
        return kept(self._of_digest[digest], records)


def kept(of: RecordFilter, records: Iterable[Record]) -> list[Record]:
    """The records that a filter keeps; its limits of sizes are unknown here."""
    return [r for r in records if _named(of, r) and any(r.hash in hashes for hashes in of.ranges)]


def _named(of: RecordFilter, record: Record) -> bool:
    return record.key not in of.deny and (of.allow is None or record.key in of.allow)


def _drawn(random: Random) -> RecordFilter:
    keys = random.sample((*KEYS, None), random.randint(1, 4))
    parts = sorted(random.sample(cuts(_PARTS), 2))
    by_range = RecordFilter(ranges=tuple(parts))
    return random.choice((RecordFilter(deny=frozenset(keys)), RecordFilter(allow=frozenset(keys)), by_range))
