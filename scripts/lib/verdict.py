"""Compares the records that a sink received with the sent records. Pure: knows neither files nor Spark nor Kafka."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Sent = tuple[str | None, str | None]
"""Key and value of a sent record; its offset is its place in the sequence."""


class PromiseBrokenError(AssertionError):
    """A record was lost, altered or out of order."""


@dataclass(frozen=True, slots=True, order=True)
class Delivery:
    """A record as the sink received it; deliveries order as they reached the sink."""

    batch: int
    input_partition: int
    place: int  # within its input partition
    offset: int
    key: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a delivery of `sent` records; each count is of records."""

    sent: int
    repeats: int = 0
    lost: int = 0
    altered: int = 0  # delivered with another key or value than the sent ones
    out_of_order: int = 0

    @property
    def good(self) -> bool:
        """Whether every record was delivered exactly once, as sent, and each key in order."""
        return not (self.repeats or self.lost or self.altered or self.out_of_order)

    def __str__(self) -> str:
        faults = f"{self.repeats:,} repeats, {self.lost:,} lost, {self.out_of_order:,} out of order within a plane"
        altered = f", {self.altered:,} altered" if self.altered else ""
        once = f"{self.sent:,} flights sent, each received exactly once" if self.good else f"{self.sent:,} flights sent"
        return f"{once}: {faults}{altered}"


def require(kept: bool, faults: object) -> None:
    """Raise `PromiseBrokenError` with the faults, unless the promise was kept."""
    if not kept:
        raise PromiseBrokenError(str(faults))


def require_good(verdict: Verdict) -> None:
    """Raise `PromiseBrokenError` unless the verdict is good."""
    require(verdict.good, verdict)


def judge(sent: Sequence[Sent], deliveries: Iterable[Delivery]) -> Verdict:
    """Compare received records with sent records.

    Order is that of *first* deliveries (rule: key-order): by batch, within a batch by input partition and place.
    A key in two input partitions of one batch is out of order too: they run at the same time.
    """
    seen: set[int] = set()
    latest: dict[str, Delivery] = {}
    repeats = altered = out_of_order = 0
    for each in sorted(deliveries, key=lambda d: (d.batch, d.input_partition, d.place)):
        if each.offset in seen:
            repeats += 1
            continue
        seen.add(each.offset)
        altered += not _as_sent(sent, each)
        if each.key is not None:
            out_of_order += not _follows(latest.get(each.key), each)
            latest[each.key] = max(latest.get(each.key, each), each, key=lambda d: d.offset)
    return Verdict(len(sent), repeats, len(set(range(len(sent))) - seen), altered, out_of_order)


def _as_sent(sent: Sequence[Sent], received: Delivery) -> bool:
    return received.offset < len(sent) and sent[received.offset] == (received.key, received.value)


def _follows(before: Delivery | None, now: Delivery) -> bool:
    """Whether `now` surely reached the sink after `before`, and should have."""
    if before is None:
        return True
    at_the_same_time = before.batch == now.batch and before.input_partition != now.input_partition
    return before.offset < now.offset and not at_the_same_time
