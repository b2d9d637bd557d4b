"""A member's view of Kafka: topics at most a second old, and the bounds of their logs. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from coordinator.member.decision import LOOK_MS, Call, Decision, Seen
from coordinator.member.kinds import Request
from coordinator.member.requests import (
    Event,
    LogLine,
    ReadEpochEnds,
    ReadGroupOffsets,
    ReadLogEnds,
    ReadOtherTopics,
    ReadPartitionsSeen,
    ReadTopics,
)
from coordinator.member.state import UNSEEN, LogView, State
from coordinator.plan.joined_topics import grown_together
from coordinator.progress import data_loss
from coordinator.progress import mirror as mirroring
from coordinator.progress.leader_epochs import Extents
from coordinator.values.subscription import OffsetByPartition, Topic, TopicPartition


def see_topics(state: State, seen: Seen, call: Call) -> Decision:
    """Read the topics if the known ones are a second old; not at each retry while Redis is away.

    One line and one event if a joined topic has grown before the others (rule: joined-topics).
    """
    asked = state.log.asked_ms
    if asked is not None and (state.life.away or seen.now_ms - asked < LOOK_MS):
        return Decision(state)
    log = topics_again(state.log, seen, call)
    waiting = {name: topic.waiting for name, topic in log.topics.items() if topic.waiting}
    if waiting == log.told:
        return Decision(replace(state, log=log))
    notices = tuple(_notices(log.topics, waiting, call)) if waiting else ()
    return Decision(replace(state, log=replace(log, told=waiting)), notices)


def _notices(topics: Mapping[str, Topic], waiting: Mapping[str, int], call: Call) -> Iterator[Request[Any]]:
    for name, more in waiting.items():
        count = topics[name].count
        text = (
            f"{name}: {more} of {count + more} partitions wait, from {count} on: the other topics of copartition have"
            " fewer"
        )
        yield Event("growth", text)
        yield LogLine(
            f"group {call.setup.settings.group}: {text}. The partitions before them are read on. Remedy: give each"
            f" topic of copartition {count + more} partitions"
        )


def topics_again(log: LogView, seen: Seen, call: Call, *, anew: bool = False) -> LogView:
    """The view with topics that are read now: earlier log ends are of these topic ids.

    Raises `NotCopartitionedError` if a new group joins topics with different numbers of partitions.
    """
    topics = _joined(log, seen.of(ReadTopics(anew=True) if anew else ReadTopics()), seen, call)
    log = replace(log, asked_ms=seen.now_ms, beginnings=None)
    if topics == log.topics:
        return log
    partitions = tuple(TopicPartition(t, p) for t, of in sorted(topics.items()) for p in of.partitions)
    same = {tp for tp in partitions if tp.topic in log.topics and log.topics[tp.topic].id == topics[tp.topic].id}
    reached = {tp: end for tp, end in log.reached.items() if tp in same}
    low = {tp: of for tp, of in log.low.items() if tp in same}
    bounds = {tp: of for tp, of in log.bounds.items() if tp in same}
    return replace(log, topics=topics, partitions=partitions, reached=reached, low=low, bounds=bounds)


def _joined(log: LogView, topics: Mapping[str, Topic], seen: Seen, call: Call) -> Mapping[str, Topic]:
    """The topics, with equal numbers of partitions where they are joined. A query without a group reads them all."""
    joined = call.setup.cutting.joined if call.setup.settings.group else ()
    others = tuple(name for name in joined if name not in topics) if call.setup.partial else ()
    found = {**(seen.of(ReadOtherTopics(others, quick=True)) if others else {}), **topics}
    counts = {name: found[name].count for name in joined if name in found}
    if len(set(counts.values())) < 2:
        return topics
    before = {name: log.topics[name].count for name in counts if name in log.topics}
    return grown_together(topics, counts, before, _read_by_the_group(seen))


def _read_by_the_group(seen: Seen) -> Mapping[str, int]:
    """The numbers of partitions that the group knows; of the mirror if Redis has lost the group."""
    if of_redis := seen.of(ReadPartitionsSeen()):
        return of_redis
    mirrored = sorted(seen.of(ReadGroupOffsets()) or ())
    return {tp.topic: tp.partition + 1 for tp in mirrored}


def topics_at_ms(log: LogView, redis_ms: int, seen: Seen) -> int:
    """When the topics were read, or a little earlier, by Redis TIME; Redis answered this step at `redis_ms`."""
    return redis_ms - (seen.now_ms - log.asked_ms) if log.asked_ms is not None else redis_ms


def see_logs(state: State, seen: Seen, call: Call) -> Decision:
    """Read the ends of all logs, with one request to each broker: the beginnings are as old as the topics.

    A partition whose leader does not answer keeps its last known bounds, and is silent: nothing more is planned of it
    (rule: silent-leader).
    Topics of a pattern that vanished meanwhile are left out. Equal bounds stay the same object: quick to compare.
    """
    log = state.log
    found = seen.of(ReadLogEnds(log.partitions, log.beginnings))
    if found is None:
        log = topics_again(log, seen, call)
        found = seen.of(ReadLogEnds(log.partitions, None, strict=True)) or {}
    silent = frozenset(log.partitions) - found.keys()
    found = {**found, **{tp: log.bounds.get(tp, UNSEEN) for tp in silent}}
    if silent != log.silent:
        log = replace(log, silent=silent)
    if log.beginnings is None and all(found[tp] is not UNSEEN for tp in silent):
        log = replace(log, beginnings={tp: b.beginning for tp, b in found.items()})
    return Decision(replace(state, log=log if found == log.bounds else replace(log, bounds=found)))


def begin_run(state: State, ends: OffsetByPartition) -> State:
    """The targets of a run with AvailableNow; `pacing` adds those of silent leaders once they answer."""
    silent = state.log.silent
    targets = {tp: end for tp, end in ends.items() if tp not in silent}
    return replace(state, pace=replace(state.pace, targets=targets, late=silent, helps=False))


def with_epoch_ends(log: LogView, extents: Extents, seen: Seen) -> tuple[LogView, dict[TopicPartition, int]]:
    """The ends of leader epochs in logs that have a newer one, and whose leader answers. Each is read once."""
    answered = log.bounds.keys() - log.silent
    older = {
        tp: extent.epoch for tp, extent in extents.items() if tp in answered and extent.epoch < log.bounds[tp].epoch
    }
    keys = {tp: (log.topics[tp.topic].id, tp, epoch, log.bounds[tp].epoch) for tp, epoch in older.items()}
    if wanted := {tp: epoch for tp, epoch in older.items() if keys[tp] not in log.epoch_ends}:
        ends = seen.of(ReadEpochEnds(wanted))
        log = replace(log, epoch_ends={**log.epoch_ends, **{keys[tp]: ends.get(tp) for tp in wanted}})
    found = {tp: log.epoch_ends[key] for tp, key in keys.items()}
    return log, {tp: end for tp, end in found.items() if end is not None}


def recreated(log: LogView, topic_ids: Mapping[str, str]) -> tuple[data_loss.Recreated, ...]:
    """The topics that have other ids now."""
    return tuple(data_loss.recreated(topic_ids, log.topics))


def mirrored_topics(topics: Mapping[str, Topic], offsets: mirroring.GroupOffsets, seen: Seen) -> Mapping[str, Topic]:
    """The subscribed topics, and those of the mirror that other members read. Of these only mirrored partitions."""
    if not (others := mirroring.names(offsets) - topics.keys()):
        return topics
    found = seen.of(ReadOtherTopics(tuple(sorted(others))))
    mirror = mirroring.mirrored(offsets, found)
    here = {name: tuple(sorted(tp.partition for tp in mirror if tp.topic == name)) for name in found}
    return {**{name: replace(found[name], partitions=here[name]) for name in found if here[name]}, **topics}
