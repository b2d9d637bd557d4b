"""How far logs reached under a leader epoch: shows a log that was cut and grew again (rule: leader-epoch-facts). Pure.

    leader epoch 3   |#########|          9 was its end when a member read up to there; then an unclean election
    leader epoch 4   |######=======|      in the log there is now epoch 3 ends at 6: of those read three are no more

An end that was seen is a fact for ever: whoever tells it tells its own leader epoch with it, and no clean election
takes away what lies below. So a fact that is old, or written late, misses a cut at worst and never makes one up.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.errors import StateFormatError
from coordinator.ranges import NUMBER
from coordinator.subscription import Bounds, TopicPartition

_TEXT = re.compile(rf"({NUMBER})@({NUMBER}) reset=({NUMBER}) topic=(\S+)")


@dataclass(frozen=True, slots=True)
class Extent:
    """The log of leader epoch `epoch` held everything below `end`."""

    epoch: int
    end: int

    def text(self, reset: int, topic_id: str) -> str:
        """Its form in Redis, with the reset epoch and the topic id that it is of."""
        return f"{self.epoch}@{self.end} reset={reset} topic={topic_id}"


Extents = Mapping[TopicPartition, Extent]


def extents_of(bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, Extent]:
    """What bounds say; nothing of brokers that tell no leader epoch."""
    return {tp: Extent(b.epoch, b.end) for tp, b in bounds.items() if b.epoch >= 0}


def leader_epochs(
    partitions: Iterable[TopicPartition], bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    """The leader epochs of some partitions, as far as brokers told them."""
    return {tp: bounds[tp].epoch for tp in partitions if tp in bounds and bounds[tp].epoch >= 0}


def parsed(
    texts: Mapping[TopicPartition, str], reset: int, topic_ids: Mapping[str, str]
) -> dict[TopicPartition, Extent]:
    """The extents of Redis' form; one of another reset epoch or topic id is no fact any more.

    Raises `StateFormatError` for what is not of that form.
    """
    extents = {}
    for tp, text in texts.items():
        found = _TEXT.fullmatch(text)
        if not found:
            raise StateFormatError(f"the leader epoch of {tp} is recorded as {text!r}")
        if (int(found[3]), found[4]) == (reset, topic_ids.get(tp.topic)):
            extents[tp] = Extent(int(found[1]), int(found[2]))
    return extents
