"""The extents of logs under leader epochs show a log that was cut and grew again (rule: leader-epoch-facts). Pure.

    leader epoch 3   |#########|          a member has read up to its end, 9; then an unclean election
    leader epoch 4   |######=======|      now epoch 3 ends at 6 in the log: three of the read records are gone

An end stays a fact: a broker reports it with its leader epoch, and no clean election removes records below it. So an
old or late fact may miss a cut, and never reports a cut that did not happen.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.errors import StateFormatError
from coordinator.values.identifiers import LEADER_EPOCH_MAX
from coordinator.values.ranges import NUMBER
from coordinator.values.subscription import Bounds, TopicPartition

_TEXT = re.compile(rf"({NUMBER})@({NUMBER}) reset=({NUMBER}) topic=(\S+)")


@dataclass(frozen=True, slots=True)
class Extent:
    """The log of leader epoch `epoch` held everything below `end`."""

    epoch: int
    end: int

    def text(self, reset: int, topic_id: str) -> str:
        """Its form in Redis, with its reset epoch and topic id."""
        return f"{self.epoch}@{self.end} reset={reset} topic={topic_id}"


Extents = Mapping[TopicPartition, Extent]


def extents_of(bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, Extent]:
    """The extents of bounds; none of brokers that report no leader epoch."""
    return {tp: Extent(b.epoch, b.end) for tp, b in bounds.items() if b.epoch >= 0}


def leader_epochs(
    reached: Mapping[TopicPartition, int], bounds: Mapping[TopicPartition, Bounds]
) -> dict[TopicPartition, int]:
    """The leader epochs whose logs hold everything below these offsets, as far as brokers reported them.

    Bounds of a silent leader are old: others may have read beyond their end, what a later leader wrote.
    """
    seen = {tp: bounds[tp] for tp, offset in reached.items() if tp in bounds and offset <= bounds[tp].end}
    return {tp: b.epoch for tp, b in seen.items() if b.epoch >= 0}


def parsed(
    texts: Mapping[TopicPartition, str], reset: int, topic_ids: Mapping[str, str]
) -> dict[TopicPartition, Extent]:
    """The extents in the form of Redis, without those of another reset epoch or topic id.

    Raises `StateFormatError` for a text of another form.
    """
    extents = {}
    for tp, text in texts.items():
        found = _TEXT.fullmatch(text)
        if not (found and int(found[1]) <= LEADER_EPOCH_MAX):
            raise StateFormatError(f"the leader epoch of {tp} is recorded as {text!r}")
        if (int(found[3]), found[4]) == (reset, topic_ids.get(tp.topic)):
            extents[tp] = Extent(int(found[1]), int(found[2]))
    return extents
