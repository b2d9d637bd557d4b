"""The stream offset: Spark stores it in its checkpoint, and a replay needs nothing else (rule: self-contained-offset).

    {"#": {"v": 2, "early": 1, "filter": "<digest of the record filter>", "founding": "9c41ab03", "group": "g",
           "member": "m-7f", "reset": 0, "topics": {"orders": "<topic id>"},
           "epochs": {"orders": {"0": <leader epoch under which the log's end was seen when this was planned>}}},
     "orders": {"0": {"<lo>-<hi>": "<lane epoch>@120-160,171-240"}}}

Each lane has its hashes, its lane epoch and the offset ranges to read, both ends included. An idle lane has its
position only: `<lane epoch>@241`. Spark compares offsets as text, so the form is canonical: sorted, and equal values
have equal text. Leaves are text or whole numbers, as Spark requires.

In a group without order the header has `"ordering": "none"` and version 3. A partition then has one lane of all hashes,
and its offset ranges are the slices that its member got (rule: hand-out).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, NamedTuple, Self

from coordinator.errors import CheckpointMismatchError, StateFormatError
from coordinator.progress.slices import Slice
from coordinator.values import identifiers
from coordinator.values.hash_map import HashMap, overlap
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange, Offsets
from coordinator.values.subscription import TopicPartition

VERSION, VERSION_WITHOUT_ORDER = 2, 3  # rule: schema-number
HEADER = "#"  # no topic can have this name
ALONE = "-"  # the lane epoch without a group
_VERSION_MAX = 999
_EARLY_MAX = 10**9
_NONE = "none"
_SHOWN = 300  # characters of a wrong checkpoint that an error shows

Json = dict[str, Any]
_reads = attrgetter("epoch", "position", "offsets")


class Lane(NamedTuple):
    """A hash range at one lane epoch, its position, and the offsets that a batch reads of it.

    `offsets` is empty or begins at the position. Individual commits lie between its ranges.
    """

    hashes: HashRange
    epoch: str
    position: int
    offsets: Offsets = ()

    @property
    def until(self) -> int:
        """The position once `offsets` are done."""
        return self.offsets[-1].until if self.offsets else self.position

    def __str__(self) -> str:
        return f"{self.epoch}@{','.join(map(str, self.offsets)) or self.position}"

    @classmethod
    def parse(cls, hashes: str, text: str) -> Self:
        """The lane of its two texts; raises `StateFormatError`."""
        epoch, at, what = text.partition("@")
        if not at:
            raise StateFormatError(f"lane {hashes} has {text!r}, not <lane epoch>@<offsets>")
        offsets = () if what.isdecimal() else tuple(OffsetRange.parse(r) for r in what.split(","))
        if any(left.until > right.start for left, right in pairwise(offsets)):
            raise StateFormatError(f"lane {hashes} has offset ranges out of order: {what!r}")
        position = offsets[0].start if offsets else int(what)
        lane = cls(HashRange.parse(hashes), identifiers.lane_epoch(epoch), position, offsets)
        identifiers.number(lane.until, identifiers.POSITION_MAX, f"the end of lane {hashes},")
        if (str(lane.hashes), str(lane)) != (hashes, text):
            raise StateFormatError(f"lane {hashes} has {text!r}, which is not the form that coop-kafka writes")
        return lane


Lanes = Mapping[TopicPartition, tuple[Lane, ...]]


def ends_of_lanes(lanes: Lanes) -> dict[TopicPartition, int]:
    """The highest end of the lanes of each partition."""
    return {tp: max(lane.until for lane in of_tp) for tp, of_tp in lanes.items()}


class Row(NamedTuple):
    """Neighbouring lanes with the same lane epoch and the same offsets. A partition has mostly one row."""

    hashes: HashRange  # of all of them
    epoch: str
    position: int
    offsets: Offsets
    parts: tuple[HashRange, ...]  # of each lane, ascending

    @property
    def until(self) -> int:
        """The position once `offsets` are done."""
        return self.offsets[-1].until if self.offsets else self.position

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Its lanes."""
        return tuple(Lane(hashes, self.epoch, self.position, self.offsets) for hashes in self.parts)


Rows = Mapping[TopicPartition, tuple[Row, ...]]


class LanesOfRows(Mapping[TopicPartition, tuple[Lane, ...]]):
    """The lanes of rows, made at each access."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __getitem__(self, tp: TopicPartition) -> tuple[Lane, ...]:
        return tuple(lane for row in self.rows[tp] for lane in row.lanes)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    __hash__ = None  # type: ignore[assignment]  # as of any mapping

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and len(self) == len(other) and all(self[tp] == other.get(tp) for tp in self)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)  # without slots, for its cached properties
class StreamOffset:
    """One offset of a streaming query. `member` is None in the initial offset, `group` in standalone mode."""

    group: str | None
    member: str | None = None
    reset: int = 0
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)  # of the logs at planning
    early: int = 0  # 0: slices end as planned. Else tasks may end them early; it numbers equal plans
    filter: str = ""  # the digest of the record filter that its batch was planned with; empty without a filter
    by_key: bool = True  # False: of a group without order
    founding: str = ""  # of its group (rule: one-founding); empty in the initial offset and without a group

    def __iter__(self) -> Iterator[tuple[TopicPartition, Lane]]:
        """Every lane with its partition, in order."""
        return ((tp, lane) for tp, lanes in self.lanes.items() for lane in lanes)

    @cached_property
    def rows(self) -> Rows:
        """The lanes as rows: lanes that are alike together."""
        if isinstance(self.lanes, LanesOfRows):
            return self.lanes.rows
        return {tp: tuple(_rows(lanes)) for tp, lanes in self.lanes.items()}

    def without(self, partitions: Collection[TopicPartition]) -> Self:
        """The offset without the lanes of some partitions."""
        return replace(self, lanes={tp: lanes for tp, lanes in self.lanes.items() if tp not in partitions})

    @cached_property
    def slices(self) -> tuple[Slice, ...]:
        """The slices of the batch that ends here."""
        rows = ((tp, row) for tp, of_tp in self.rows.items() for row in of_tp)
        return tuple(Slice(tp, hashes, r) for tp, row in rows for hashes in row.parts for r in row.offsets)

    @cached_property
    def digest(self) -> str:
        """The name of the batch that ends here, 16 hex digits. A replay has the same digest, wherever lanes are cut.

        It is unique in a group: a lane epoch is never used twice, and its positions only grow.
        """
        reads = (f"{tp.topic} {tp.partition} {run}" for tp in sorted(self.rows) for run in _runs(self.rows[tp]))
        return blake2b("\n".join((f"{self.reset} {self.early}", *reads)).encode(), digest_size=8).hexdigest()

    def to_json(self) -> Json:
        """The canonical JSON form."""
        version = VERSION if self.by_key else VERSION_WITHOUT_ORDER
        header: Json = {"v": version, "reset": self.reset, "topics": dict(sorted(self.topic_ids.items()))}
        header |= {k: v for k, v in (("group", self.group), ("member", self.member)) if v is not None}
        if not self.by_key:
            header["ordering"] = _NONE
        if self.early:
            header["early"] = self.early
        if self.filter:
            header["filter"] = self.filter
        if self.founding:
            header["founding"] = self.founding
        if self.leader_epochs:
            header["epochs"] = _by_topic(self.leader_epochs)
        body: Json = {HEADER: dict(sorted(header.items()))}
        for tp in sorted(self.rows):
            topic = body.setdefault(tp.topic, {})
            texts: dict[str, str] = {}
            for row in sorted(self.rows[tp], key=attrgetter("hashes")):
                texts |= dict.fromkeys(_names(row.parts), str(Lane(*row[:4])))
            topic[str(tp.partition)] = texts
        return body

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """The offset of a JSON form, checked. Raises `CheckpointMismatchError` for a form that is not ours."""
        try:
            return cls._from_json(body)
        except (StateFormatError, AttributeError, TypeError, ValueError, KeyError) as error:
            raise CheckpointMismatchError(
                f"the checkpoint holds an offset that coop-kafka did not write: {_error_text(error)[:_SHOWN]}",
                "start the query with a new checkpointLocation and a new output; positions of the group stay in Redis",
            ) from None

    @classmethod
    def _from_json(cls, body: Json) -> Self:
        header = body[HEADER]
        version = identifiers.number(header["v"], _VERSION_MAX, "version")
        by_key = _by_key(header)
        if version != (VERSION if by_key else VERSION_WITHOUT_ORDER):
            raise CheckpointMismatchError(
                f"the checkpoint is of version {version}, this coop-kafka reads version {VERSION}",
                "run the version that wrote it, or a newer one",
            )
        lanes = {tp: _lanes(texts) for tp, texts in _of_partitions({t: of for t, of in body.items() if t != HEADER})}
        epochs = _of_partitions(header.get("epochs", {}))
        offset = cls(
            _optional(identifiers.group, header.get("group")),
            _optional(identifiers.member, header.get("member")),
            identifiers.number(header["reset"], identifiers.RESET_MAX, "reset epoch"),
            {identifiers.topic(t): identifiers.topic_id(identity) for t, identity in header["topics"].items()},
            {tp: of_tp for tp, of_tp in sorted(lanes.items()) if of_tp},
            {tp: identifiers.number(e, identifiers.LEADER_EPOCH_MAX, "leader epoch") for tp, e in epochs},
            early=identifiers.number(header.get("early", 0), _EARLY_MAX, "early"),
            filter=identifiers.digest(header["filter"]) if "filter" in header else "",
            by_key=by_key,
            founding=identifiers.founding(header["founding"]) if "founding" in header else "",
        )
        _check_whose(offset)
        return offset


def _error_text(error: Exception) -> str:
    """The error without its remedy, which is for damaged state in Redis."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return error.what if isinstance(error, StateFormatError) else str(error)


def _rows(lanes: Iterable[Lane]) -> Iterator[Row]:
    for (epoch, position, offsets), alike in groupby(lanes, key=_reads):
        parts = [next(alike).hashes]
        for lane in alike:  # noqa: B031 - its rest
            if parts[-1].hi + 1 != lane.hashes.lo:
                yield row_of(epoch, position, offsets, tuple(parts))
                parts = []
            parts.append(lane.hashes)
        yield row_of(epoch, position, offsets, tuple(parts))


def _runs(rows: Iterable[Row]) -> Iterator[str]:
    """The offsets of each hash range, as text. Equal neighbours are one, so every cut has the same text."""
    reads = ((row.hashes, f"{row.epoch} {row.position} {row.until}") for row in sorted(rows, key=attrgetter("hashes")))
    return (f"{hashes.lo} {hashes.hi} {text}" for hashes, text in HashMap(reads).coalesced())


def row_of(epoch: str, position: int, offsets: Offsets, parts: tuple[HashRange, ...]) -> Row:
    """The row of lanes that are alike. Its parts ascend without a gap."""
    return Row(HashRange(parts[0].lo, parts[-1].hi), epoch, position, offsets, parts)


@lru_cache(maxsize=1_024)
def _names(parts: tuple[HashRange, ...]) -> tuple[str, ...]:
    """The texts of hashes. Partitions by the thousand are cut alike."""
    return tuple(map(str, parts))


def _by_topic(epochs: Mapping[TopicPartition, int]) -> Json:
    topics: Json = {}
    for tp in sorted(epochs):
        topics.setdefault(tp.topic, {})[str(tp.partition)] = epochs[tp]
    return topics


def _lanes(texts: Mapping[str, str]) -> tuple[Lane, ...]:
    lanes = tuple(sorted(Lane.parse(hashes, text) for hashes, text in texts.items()))
    if wrong := overlap(lane.hashes for lane in lanes):
        raise StateFormatError(f"lanes {wrong[0]} and {wrong[1]} overlap")
    return lanes


def _of_partitions(topics: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[TopicPartition, Any]]:
    for name, partitions in topics.items():
        for number, value in partitions.items():
            yield TopicPartition(identifiers.topic(name), identifiers.partition(number)), value


def _optional(parse: Callable[[object], str], value: object) -> str | None:
    return None if value is None else parse(value)


def _check_whose(offset: StreamOffset) -> None:
    """Refuse lanes of topics without ids, lanes without a member of their group, and lane epochs without a group."""
    if unnamed := sorted({tp.topic for tp in offset.lanes} - offset.topic_ids.keys()):
        raise StateFormatError(f"topic {unnamed[0]!r} has lanes, and no topic id")
    if offset.lanes and (offset.group is None) != (offset.member is None):
        raise StateFormatError("it has lanes, but only one of group and member")
    if not offset.by_key:
        _check_slices(offset)
    for tp, lane in offset:
        if (lane.epoch == ALONE) != (offset.group is None):
            raise StateFormatError(f"lane {lane.hashes} of {tp} has lane epoch {lane.epoch!r}")


def _by_key(header: Json) -> bool:
    if (ordering := header.get("ordering")) not in (None, _NONE):
        raise StateFormatError(f"its ordering is {ordering!r}, not {_NONE!r}")
    return ordering is None


def _check_slices(offset: StreamOffset) -> None:
    for tp, lanes in offset.lanes.items():
        if len(lanes) != 1 or lanes[0].hashes != WHOLE:
            raise StateFormatError(f"{tp} has lanes of hashes in an offset without order")
