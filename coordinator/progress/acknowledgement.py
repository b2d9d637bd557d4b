"""The text that acknowledges one row: it has everything that a commit of its record needs. Pure.

    1/orders-to-lake/m-7f31c0de/0/orders/4fVqT0pMQ2Wx/0/0000000000000000-7fffffffffffffff/9c41ab03.17/100/110/2890123456

Version, group, member, reset epoch, topic, topic id, partition, hashes, lane epoch; the first and the last offset that
it covers, and a check of all these. It covers the record, and offsets that hold no record of these hashes (rule:
acknowledge-holes). The last row of a partition in a task has several such parts, with spaces between them, if other
hashes of the task have holes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Self
from urllib.parse import quote, unquote
from zlib import crc32

from coordinator.errors import CorruptAcknowledgementError, StateFormatError
from coordinator.errors.quoting import quoted
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice, merged
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values import identifiers
from coordinator.values.ranges import NUMBER, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

VERSION = "1"
_WORD = 2**64 - 1
_FORM = re.compile("/".join([f"({VERSION})", *["([^/]*)"] * 8, *[f"({NUMBER})"] * 3]))
_tp = attrgetter("topic_partition")


class Strip(NamedTuple):
    """Neighbouring lanes that one task reads from the same offset to the same offset, at one lane epoch."""

    area: Slice
    head: str  # of the texts of its records, up to the first covered offset


def check_of(head: Any, since: Any, last: Any) -> Any:
    """32 bits of the CRC of the head and of both offsets. Takes Python's numbers, or numpy's arrays of uint64."""
    mixed = (head + since * 0x9E3779B97F4A7C15 + last * 0xC2B2AE3D27D4EB4F) & _WORD
    return (((mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9) & _WORD) >> 32


def strips_of(end: StreamOffset, slices: Iterable[Slice]) -> Mapping[TopicPartition, tuple[Strip, ...]]:
    """The strips of a task that reads `slices` of the batch. Together they have the same points."""
    of_tp: dict[TopicPartition, list[Slice]] = {}
    for s in slices:
        of_tp.setdefault(s.topic_partition, []).append(s)
    return {tp: tuple(_strips(end, tp, read)) for tp, read in of_tp.items()}


def with_holes(text: str, holes: Iterable[tuple[str, OffsetRange]]) -> str:
    """The text of a row that also covers these holes. Each comes with the head of its strip."""
    head, since, last, _ = text.rsplit("/", 3)
    parts = [text]
    for its_head, hole in holes:
        if its_head == head and hole.start == int(last) + 1:
            parts[0] = _text(head, OffsetRange(int(since), hole.until))
        else:
            parts.append(_text(its_head, hole))
    return " ".join(parts)


def _text(head: str, covered: OffsetRange) -> str:
    since, last = covered.start, covered.until - 1
    return f"{head}/{since}/{last}/{check_of(crc32(head.encode()), since, last)}"


def _strips(end: StreamOffset, tp: TopicPartition, read: list[Slice]) -> Iterable[Strip]:
    for row in end.rows.get(tp, ()):
        within = ((s, s.hashes.intersection(row.hashes)) for s in read)
        for area in merged(s._replace(hashes=hashes) for s, hashes in within if hashes):
            yield Strip(area, _head(end, tp, Owned(area.hashes, row.epoch)))


def _head(end: StreamOffset, tp: TopicPartition, lane: Owned) -> str:
    whose = quote(str(end.group), safe=""), end.member, end.reset
    return "/".join(
        map(str, (VERSION, *whose, tp.topic, end.topic_ids[tp.topic], tp.partition, lane.hashes, lane.epoch))
    )


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A part of a text: offsets of a lane that are done."""

    group: str
    member: str
    reset: int
    topic_id: str
    tp: TopicPartition
    lane: Owned  # hashes at a lane epoch
    offsets: OffsetRange  # that it covers: at most one of them holds a record of these hashes

    @classmethod
    def parse(cls, text: object) -> tuple[Self, ...]:
        """The parts of the acknowledgement of a row. The first one covers its record, the others cover holes.

        Raises `CorruptAcknowledgementError` for any other text.
        """
        return tuple(map(cls._part, text.split(" ") if isinstance(text, str) else [text]))

    @classmethod
    def _part(cls, text: object) -> Self:
        try:
            found = _FORM.fullmatch(text) if isinstance(text, str) else None
            if not found:
                raise StateFormatError("it has another form")
            return cls._of(*found.groups())
        except (StateFormatError, ValueError) as error:  # ValueError: lone surrogates, numbers of thousands of digits
            why = error.what if isinstance(error, StateFormatError) else "its text cannot be read"
            shown = quoted(text) if isinstance(text, str) else f"a {type(text).__name__}"
            raise CorruptAcknowledgementError(f"{shown} is not the acknowledgement of a row: {why}") from None

    @classmethod
    def _of(cls, *parts: str) -> Self:
        _, group, member, reset, topic, topic_id, partition, hashes, epoch, since, last, check = parts
        if int(check) != check_of(crc32("/".join(parts[:9]).encode()), int(since), int(last)):
            raise StateFormatError("its check differs")
        if not reset.isdecimal():
            raise StateFormatError(f"{quoted(reset)} is not a reset epoch")
        return cls(
            identifiers.group(unquote(group)),
            identifiers.member(member),
            identifiers.number(int(reset), identifiers.RESET_MAX, "reset epoch"),
            identifiers.topic_id(topic_id),
            TopicPartition(identifiers.topic(topic), identifiers.partition(partition)),
            Owned(HashRange.parse(hashes), identifiers.lane_epoch(epoch)),
            OffsetRange(int(since), int(last) + 1),
        )
