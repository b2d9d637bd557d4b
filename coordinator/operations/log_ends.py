"""Log ends of Kafka in place of those that a member saw last. So lag grows also while no member lives.

Redis        stable 50    end 80 at 12:00      lag 30, at 12:00
Kafka now                 end 1080             lag 1030
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from coordinator.group_state import GroupState
from coordinator.ports import Log
from coordinator.subscription import Pattern, TopicPartition

Ends = dict[TopicPartition, int]
"""The log end of each partition that Kafka has."""


def log_ends(log: Log, partitions: Iterable[TopicPartition]) -> Ends:
    """Ask Kafka for the log ends of those partitions that it has. Raises `LogError`s.

    An end is the last stable offset if `log` has the isolation level read_committed.
    """
    wanted = set(partitions)
    if not wanted:
        return {}
    names = "|".join(re.escape(topic) for topic in sorted({tp.topic for tp in wanted}))
    topics = log.topics(Pattern(f"^(?:{names})$"))
    there = [tp for tp in sorted(wanted) if tp.topic in topics and tp.partition in topics[tp.topic].partitions]
    return {tp: bounds.end for tp, bounds in log.bounds(there, dict.fromkeys(there, 0)).items()} if there else {}


def with_ends(state: GroupState, ends: Ends) -> GroupState:
    """The group with these log ends, as seen now. Partitions that Kafka lacks have no end. Pure."""
    mine = {tp: ends[tp] for tp in state.segments if tp in ends}
    return replace(state, ends=mine, ends_ms={tp.topic: state.now_ms for tp in mine})


def age_s(state: GroupState, topic: str) -> float | None:
    """The age of the topic's log ends in seconds; None before the first look. Pure."""
    seen_ms = state.ends_ms.get(topic)
    return None if seen_ms is None else max(0, state.now_ms - seen_ms) / 1_000
