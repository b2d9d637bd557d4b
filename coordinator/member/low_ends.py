"""A log end that is lower than before is not believed at once. Pure.

    position 100, or an earlier end     |##########|
    the log ends                        |########      read again, at once: as a high watermark

    high watermark at 100 or above      a transaction is open below the position: nothing is lost
    lower                               `low` for `LOW_MS`: the partition is left alone, all others go on
    still lower, at one leader epoch    the log is shorter: `losing` looks for lost records

A new leader learns how far its log is replicated only once its followers have fetched from it. Kafka refuses to answer
until then (KIP-207, from 2.2 on); not every broker does.

rule: low-end
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from coordinator.member.decision import Seen
from coordinator.member.requests import ReadHighWatermarks
from coordinator.member.state import LogView, Low, unsure
from coordinator.progress.data_loss import LOW_MS
from coordinator.values.subscription import Bounds, TopicPartition


def judged(
    log: LogView, reads: Mapping[TopicPartition, int], lost: Collection[TopicPartition], seen: Seen
) -> tuple[LogView, Mapping[TopicPartition, Bounds]]:
    """The bounds by which `reads` are lost or not, and the view with the ends that are not believed yet.

    `reads` are offsets that must lie within the logs, except in partitions that are `lost` for another reason.
    """
    wanted = {tp: max(reads.get(tp, 0), log.reached.get(tp, 0)) for tp in log.bounds if tp not in lost}
    below = {tp: offset for tp, offset in wanted.items() if log.bounds[tp].end < offset}
    low, ends = believed(log.low, log.bounds, {tp: o for tp, o in below.items() if tp not in log.silent}, seen)
    ends |= {tp: offset for tp, offset in below.items() if tp in log.silent}
    bounds = {tp: b._replace(end=ends.get(tp, b.end)) for tp, b in log.bounds.items()} if ends else log.bounds
    reached = {tp: b.end for tp, b in bounds.items()}
    return log if (reached, low) == (log.reached, log.low) else replace(log, reached=reached, low=low), bounds


def believed(
    low: Mapping[TopicPartition, Low],
    bounds: Mapping[TopicPartition, Bounds],
    wanted: Mapping[TopicPartition, int],
    seen: Seen,
) -> tuple[dict[TopicPartition, Low], dict[TopicPartition, int]]:
    """The ends of logs whose known end is below `wanted`, and those that are `low`.

    An end that is not believed yet, or whose leader does not answer, counts as the wanted one. It is low at one leader
    epoch: another leader begins with another high watermark.
    """
    marks = seen.of(ReadHighWatermarks(tuple(sorted(wanted)))) if wanted else {}
    now_low, now_ms = {}, seen.now_ms
    for tp in (tp for tp, mark in marks.items() if mark < wanted[tp]):
        before, epoch = low.get(tp), bounds[tp].epoch if tp in bounds else -1
        since_ms = before.since_ms if before and before.epoch == epoch else now_ms
        now_low[tp] = Low(epoch, since_ms, believed=now_ms - since_ms >= LOW_MS)
    return now_low, {tp: o if tp in unsure(now_low) else marks.get(tp, o) for tp, o in wanted.items()}
