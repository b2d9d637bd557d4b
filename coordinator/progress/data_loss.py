"""Records that can no longer be read, and the error for them (failOnDataLoss; rule: named-data-loss). Pure.

    positions of a group                     `member.losing`
    positions of a stream without a group    `member.standalone`
    offsets of a checkpoint                  `member.accepting`
    topics of a planned batch                `member.authorizing`, `member.standalone`

Of this module, tasks know only `LOW_MS`: `spark_coop_source/fetch/fetch.py` finds lost records by itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator.errors import DataLossError
from coordinator.progress.leader_epochs import Extent, Extents
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import NO_ID, Bounds, Topic, TopicPartition

LOW_MS = 10_000
"""How long a log end that is too low is looked at again before records count as lost.

A new leader learns from its followers how far its log is replicated. They fetch at least every 500 ms
(replica.fetch.wait.max.ms), and clients learn of a leader within a second or two. Spark's source looks three times, a
second apart (SPARK-26267)."""

REMEDY = (
    "no position was moved; to continue with the records that are left, set failOnDataLoss=false;"
    " to keep records longer, raise the topic's retention"
)
BEYOND_REMEDY = (
    "nothing was committed; the log was truncated, or the checkpoint is damaged or of another cluster: start the query"
    " with a new checkpointLocation and a new output, the group's positions stay in Redis; or move positions with"
    " coop-kafka reset-offsets; or set failOnDataLoss=false, which ignores the checkpoint for this partition"
)

IDS_REMEDY = (
    "no position was moved; if it is the same topic, and brokers were upgraded: stop the queries, coop-kafka export to"
    " another group, coop-kafka delete, coop-kafka import from that group, and a new checkpointLocation; otherwise"
    " set failOnDataLoss=false, which reads the topic from its beginning"
)


@dataclass(frozen=True, slots=True)
class Aged:
    """Records below the log's beginning are unread: retention, or deleted records."""

    tp: TopicPartition
    position: int
    beginning: int

    def __str__(self) -> str:
        return f"{self.tp}: records {self.position}-{self.beginning - 1} are gone before they were read"


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log ends before a position: it was cut, or the topic was created again."""

    tp: TopicPartition
    position: int
    end: int

    def __str__(self) -> str:
        return f"{self.tp}: the log ends at {self.end}, before the position {self.position} of the group"


class Beyond(Truncated):
    """The log ends before an offset of a checkpoint: it was cut, or the checkpoint is of another log."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{self.tp}: the log ends at {self.end}, before the offset {self.position} of the checkpoint"


@dataclass(frozen=True, slots=True)
class Recreated:
    """A topic has another id than the recorded one."""

    topic: str
    recorded: str
    found: str

    def __str__(self) -> str:
        if NO_ID in (self.recorded, self.found):
            return f"topic {self.topic!r} {self._ids}, so it may be another topic"
        return f"topic {self.topic!r} was deleted and created again (topic id {self.recorded}, now {self.found})"

    @property
    def _ids(self) -> str:
        return "had no topic id and has one now" if self.recorded == NO_ID else "had a topic id and has none now"


@dataclass(frozen=True, slots=True)
class Deleted:
    """A topic was deleted while it was read."""

    topic: str

    def __str__(self) -> str:
        return f"topic {self.topic!r} was deleted while it was read"


@dataclass(frozen=True, slots=True)
class Cut:
    """The log was cut below records that were read, and may have grown again: an unclean leader election."""

    tp: TopicPartition
    read: int
    end: int
    epoch: int  # the leader epoch under which it was read

    def __str__(self) -> str:
        return (
            f"{self.tp}: records {self.end}-{self.read - 1}, which the group has read (leader epoch {self.epoch}),"
            " are no longer in the log, others may have their offsets"
        )


class Unread(Cut):
    """The log was cut below records that nobody has committed. A batch under way may have read them."""

    __slots__ = ()

    def __str__(self) -> str:
        return (
            f"{self.tp}: records {self.end}-{self.read - 1}, which no query has committed (leader epoch {self.epoch}),"
            " are no longer in the log; batches under way read their offsets again"
        )


Loss = Aged | Truncated | Cut | Recreated


def extents(offset: StreamOffset, reset: int, topic_ids: Mapping[str, str]) -> dict[TopicPartition, Extent]:
    """The extents of logs in an offset of that reset epoch, without topics that were created again."""
    return {
        tp: Extent(epoch, max(row.until for row in offset.rows[tp]))
        for tp, epoch in offset.leader_epochs.items()
        if offset.reset == reset
        and offset.rows.get(tp)
        and offset.topic_ids.get(tp.topic, "") == topic_ids.get(tp.topic)
    }


def cuts(extents: Extents, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, Cut]:
    """The logs in which, by `ends`, a leader epoch ends before the records that were read under it."""
    return {
        tp: Cut(tp, extent.end, ends[tp], extent.epoch)
        for tp, extent in extents.items()
        if tp in ends and ends[tp] < extent.end
    }


def cuts_by(
    extents: Extents, ends: Mapping[TopicPartition, int], reach: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Cut]:
    """The same of logs that are done below `reach`: records above it are unread, whatever the extent."""
    read = {tp: Extent(extent.epoch, min(extent.end, reach[tp])) for tp, extent in extents.items()}
    unread = {tp: Unread(tp, cut.read, cut.end, cut.epoch) for tp, cut in cuts(extents, ends).items()}
    return {**unread, **cuts(read, ends)}


def lowest(of_group: Mapping[TopicPartition, Cut], own: Mapping[TopicPartition, Cut]) -> dict[TopicPartition, Cut]:
    """The cuts that the group's facts or those of this process show; where both do, to the lower end.

    An old copy of Redis has positions of before an earlier cut, which this process may know no more.
    """
    both = {tp: replace(own[tp], end=min(own[tp].end, of_group[tp].end)) for tp in of_group.keys() & own.keys()}
    return {**of_group, **own, **both}


def reach(progress: Mapping[TopicPartition, Progress]) -> dict[TopicPartition, int]:
    """The offset after the last one that is done, in partitions with positions."""
    return {tp: p.furthest for tp, p in progress.items() if p.segments}


def recreated(recorded: Mapping[str, str], topics: Mapping[str, Topic]) -> Iterator[Recreated]:
    """Every topic whose id is not the recorded one."""
    for name, topic in topics.items():
        if recorded.get(name, topic.id) != topic.id:
            yield Recreated(name, recorded[name], topic.id)


def lost(
    partitions: Iterable[TopicPartition],
    recorded: Mapping[str, str],
    topics: Mapping[str, Topic],
    cut: Mapping[TopicPartition, Cut],
) -> frozenset[TopicPartition]:
    """The partitions that are cut, or of topics that were created again: whatever their log ends are."""
    again = {loss.topic for loss in recreated(recorded, topics)}
    return frozenset(tp for tp in partitions if tp in cut or tp.topic in again)


def losses(
    progress: Mapping[TopicPartition, Progress],
    bounds: Mapping[TopicPartition, Bounds],
    recorded: Mapping[str, str],
    topics: Mapping[str, Topic],
    cut: Mapping[TopicPartition, Cut],
) -> Iterator[Loss]:
    """Every topic that was created again. Of the others, every log that was `cut`, or has a position outside it."""
    again = tuple(recreated(recorded, topics))
    gone = {loss.topic for loss in again}
    yield from again
    yield from (loss for tp, loss in cut.items() if tp.topic not in gone)
    for tp, highest in reach(progress).items():
        if tp.topic in gone or tp in cut:
            continue
        if highest > bounds[tp].end:
            yield Truncated(tp, highest, bounds[tp].end)
        elif progress[tp].stable < bounds[tp].beginning:
            yield Aged(tp, progress[tp].stable, bounds[tp].beginning)


def further(offset: StreamOffset, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
    """The ends of an offset that lie beyond the known log ends (rule: checkpoint-on-resume)."""
    reach = {tp: max(row.until for row in rows) for tp, rows in offset.rows.items()}
    return {tp: until for tp, until in reach.items() if tp not in bounds or until > bounds[tp].end}


def error(loss: Loss | Deleted | Beyond) -> DataLossError:
    """The error of a loss, for failOnDataLoss=true."""
    match loss:
        case Beyond():
            return DataLossError(str(loss), BEYOND_REMEDY)
        case Recreated(recorded=had, found=has) if NO_ID in (had, has):
            return DataLossError(str(loss), IDS_REMEDY)
        case _:
            return DataLossError(str(loss), REMEDY)


def moved(
    loss: Loss, progress: Mapping[TopicPartition, Progress], bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, Progress]:
    """The progress of the partitions of a loss, moved to the records that are left."""
    match loss:
        case Aged(tp, _, beginning):
            return {tp: Progress(tuple(Segment(s.hashes, max(s.position, beginning)) for s in progress[tp].segments))}
        case Truncated(tp, _, end) | Cut(tp, _, end):
            first, of_tp = bounds[tp].beginning, progress[tp].segments  # the lowest position may be below the beginning
            return {tp: Progress(tuple(Segment(s.hashes, min(max(s.position, first), end)) for s in of_tp))}
        case Recreated(topic, _, _):
            return {
                tp: Progress(tuple(Segment(s.hashes, bounds[tp].beginning) for s in p.segments))
                for tp, p in progress.items()
                if tp.topic == topic
            }


def without(offset: StreamOffset, gone: Sequence[Recreated], *, fail_on_data_loss: bool) -> StreamOffset:
    """The batch without topics that were created again since its plan: they hold other records now.

    Raises `DataLossError` for the first of them under failOnDataLoss=true.
    """
    if not gone:
        return offset
    if fail_on_data_loss:
        raise error(gone[0])
    topics = {loss.topic for loss in gone}
    return offset.without({tp for tp in offset.lanes if tp.topic in topics})
