"""The offsets of a group's dead letters, by partition of their source. Reads the whole dead-letter topic."""

from collections.abc import Mapping

import numpy as np

from coordinator.kafka.whole_log import records
from coordinator.tools.audit.columns import NumberColumn
from coordinator.values.dead_letter import DeadLetter
from coordinator.values.log import Log
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition, Topics


def dead_letters(
    kafka: Mapping[str, object], log: Log, group: str, topic: str
) -> Mapping[TopicPartition, NumberColumn]:
    """Where the dead letters of `group` in a dead-letter topic came from. Raises `LogError`s."""
    partitions = log.topics(Topics((topic,)))[topic].partitions
    bounds = log.bounds(TopicPartition(topic, number) for number in partitions)
    stretches = {tp: OffsetRange(b.beginning, b.end) for tp, b in bounds.items() if b.beginning < b.end}
    found: dict[TopicPartition, list[int]] = {}
    for record in records(kafka, stretches):
        letter = DeadLetter.parse(record.key, record.value, record.headers)
        if letter and letter.group == group:
            found.setdefault(letter.record.tp, []).append(letter.record.offset)
    return {tp: np.array(offsets, np.int64) for tp, offsets in found.items()}
