"""The output of several drivers in the order of their common clock, checked (rule: nothing-lost). Pure."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.values.key_hash import hash_record
from coordinator.values.ranges import HashRange
from verdict import Delivery, Sent, Verdict, judge


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """One finished batch of one driver."""

    clock: int
    driver: str
    number: int  # number of the driver's finished batches, this one included
    deliveries: tuple[tuple[int, Delivery], ...]  # with partition; their batch is not known yet


@dataclass(frozen=True, slots=True)
class Held:
    """The ranges of a driver at a moment, by the clock that all share."""

    clock: int
    driver: str
    ranges: Mapping[int, tuple[HashRange, ...]]  # by partition
    epochs: frozenset[str]

    @property
    def size(self) -> int:
        """The number of key hashes in all partitions."""
        return sum(hashes.size for of_partition in self.ranges.values() for hashes in of_partition)

    def elsewhere_after_s(self, finished: Iterable[Batch]) -> float | None:
        """Seconds until another driver finished a batch with records of these key hashes; None if none did."""
        later = sorted(b for b in finished if b.clock > self.clock and b.driver != self.driver)
        return next(((b.clock - self.clock) / 1e9 for b in later if self.of(b)), None)

    def of(self, batch: Batch) -> bool:
        """Whether a batch has records of these key hashes."""
        return any(self._holds(p, d) for p, d in batch.deliveries)

    def _holds(self, partition: int, delivery: Delivery) -> bool:
        found = hash_record(None if delivery.key is None else delivery.key.encode(), delivery.offset)
        return any(found in hashes for hashes in self.ranges.get(partition, ()))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on the delivery to all sinks together."""

    verdicts: tuple[Verdict, ...]  # of each partition
    unexplained: tuple[str, ...]  # repeats of batches of undisturbed drivers

    @property
    def good(self) -> bool:
        """Something sent, nothing lost or altered, first deliveries in order, repeats only of unconfirmed records."""
        some = any(v.sent for v in self.verdicts)
        return some and not self.unexplained and not any(v.lost or v.altered or v.out_of_order for v in self.verdicts)

    def __str__(self) -> str:
        repeats, lost = sum(v.repeats for v in self.verdicts), sum(v.lost for v in self.verdicts)
        out_of_order = sum(v.out_of_order + v.altered for v in self.verdicts)
        unexplained = f"{len(self.unexplained):,} of them without a reason"
        return (
            f"{sum(v.sent for v in self.verdicts):,} records sent: {lost:,} lost,"
            f" {out_of_order:,} out of order or altered, {repeats:,} repeated, {unexplained}"
        )


def batches(driver: str, lines: Iterable[str]) -> list[Batch]:
    """The finished batches of a driver."""
    return [_batch(driver, number, json.loads(line)) for number, line in enumerate(lines, start=1)]


def outcome(
    sent: Sequence[Sequence[Sent]], finished: Iterable[Batch], disturbed: Mapping[str, Iterable[int]]
) -> Outcome:
    """Judge the sent records of each partition. `disturbed`: numbers of batches after which a driver was disturbed."""
    in_order = sorted(finished)
    per_partition: defaultdict[int, list[Delivery]] = defaultdict(list)
    for place, batch in enumerate(in_order):
        for partition, d in batch.deliveries:
            per_partition[partition].append(Delivery(place, d.input_partition, d.place, d.offset, d.key, d.value))
    verdicts = tuple(judge(of_partition, per_partition[p]) for p, of_partition in enumerate(sent))
    return Outcome(verdicts, tuple(_unexplained(in_order, {d: set(n) for d, n in disturbed.items()})))


def _unexplained(in_order: Iterable[Batch], disturbed: Mapping[str, set[int]]) -> Iterable[str]:
    """Records in more than one batch whose driver was not disturbed after it: so all those batches were confirmed.

    Also those that one batch has twice.
    """
    quiet: dict[tuple[int, int], str] = {}
    for batch in in_order:
        for (partition, offset), times in Counter((p, d.offset) for p, d in batch.deliveries).items():
            if times > 1:
                yield f"{partition}:{offset} {times} times in a batch of {batch.driver}"
        if batch.number not in disturbed.get(batch.driver, ()):
            for partition, d in batch.deliveries:
                if before := quiet.get((partition, d.offset)):
                    yield f"{partition}:{d.offset} in batches of {before} and {batch.driver}"
                quiet[partition, d.offset] = batch.driver


def _batch(driver: str, number: int, line: Mapping[str, Any]) -> Batch:
    found = (
        (p, Delivery(0, task, place, offset, key, value))
        for p, offset, key, value, task, place, *_ in line["deliveries"]
    )
    return Batch(line["clock"], driver, number, tuple(found))
