"""Where the progress of another consumer is read: in Kafka, or in the checkpoint of a query. Needs Kafka."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.errors import GroupBusyError, UnknownGroupError
from coordinator.progress.mirror import is_mirror
from coordinator.tools.moving import parallel_consumer, share_group, spark_checkpoint
from coordinator.tools.moving.progress import DoneOffsets
from coordinator.values.subscription import Pattern, TopicPartition, Topics

if TYPE_CHECKING:
    from coordinator.kafka.log import KafkaLog


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster."""

    log: "KafkaLog"
    arguments: Mapping[str, object]  # of a client


@dataclass(frozen=True, slots=True)
class ForeignProgress:
    """The progress of another consumer."""

    done: list[DoneOffsets]
    note: str = ""  # what people must know
    commits: Mapping[TopicPartition, tuple[int, str]] | None = None  # of a consumer group


def read(kind: str, name: str, cluster: Cluster) -> ForeignProgress:
    """The progress of `name`, which is of one of `KINDS`. Raises `CoopKafkaError`s."""
    return KINDS[kind](name, cluster)


def must_be_idle(found: ForeignProgress, name: str, cluster: Cluster) -> None:
    """Raise `GroupBusyError` for a consumer group with live consumers; other kinds do not show that.

    Kafka refuses to set the offsets of such a group. These are the same offsets.
    """
    if found.commits and not cluster.log.commit_group_offsets(name, found.commits):
        raise GroupBusyError(f"Kafka's group {name!r} has active consumers", "stop them, then import again")


def _of_group(name: str, cluster: Cluster) -> ForeignProgress:
    commits = _commits(name, cluster)
    mirror = "It mirrors a group of coop-kafka, whose lanes may be further." if is_mirror(commits) else ""
    return ForeignProgress([DoneOffsets(tp, offset) for tp, (offset, _) in sorted(commits.items())], mirror, commits)


def _of_parallel_consumer(name: str, cluster: Cluster) -> ForeignProgress:
    commits = _commits(name, cluster)
    return ForeignProgress(
        [parallel_consumer.done(tp, *commit) for tp, commit in sorted(commits.items())], commits=commits
    )


def _commits(name: str, cluster: Cluster) -> Mapping[TopicPartition, tuple[int, str]]:
    commits = cluster.log.group_offsets(name)
    if not commits:
        cluster.log.must_hold_offsets(name)
        raise UnknownGroupError(f"Kafka has no offsets of a group {name!r}")
    return commits


def _of_share_group(name: str, cluster: Cluster) -> ForeignProgress:
    from coordinator.kafka import whole_log  # noqa: PLC0415 - the other verbs of the command need no Kafka client

    (state,) = cluster.log.topics(Topics((share_group.TOPIC,))).values()
    bounds = cluster.log.bounds([TopicPartition(state.name, p) for p in state.partitions])
    names = {topic.id: topic.name for topic in cluster.log.topics(Pattern(".*")).values()}
    found = whole_log.records(cluster.arguments, whole_log.stretches_of(bounds))
    return ForeignProgress(share_group.done(((record.key, record.value) for record in found), name, names))


def _of_checkpoint(path: str, _: Cluster) -> ForeignProgress:
    done, begun = spark_checkpoint.done(Path(path))
    return ForeignProgress(
        done, "" if begun is None else f"Batch {begun} is not finished: the group reads its records again."
    )


KINDS: Mapping[str, Callable[[str, Cluster], ForeignProgress]] = {
    "kafka-group": _of_group,
    "parallel-consumer": _of_parallel_consumer,
    "share-group": _of_share_group,
    "spark-checkpoint": _of_checkpoint,
}
