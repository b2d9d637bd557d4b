"""The hashes that hold a group, parsed to a `GroupState`: for views, and for the check of a copy before its restore.

    meta, topics, policy, growth, assignment, lanes, working   of the group
    stable:orders, end:orders                            of a topic
    segments:orders:0, owners:, ics:, handed:            of a partition

Pure. As strict as the scripts (`damage.lua`): members refuse the same texts. An error names the key.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import TypeVar

from coordinator.assignment.assignment_text import ranges_of
from coordinator.assignment.policies import policy_of
from coordinator.errors import StateFormatError
from coordinator.progress.growth import PARTITIONS_MAX, parsed
from coordinator.progress.segments import Progress, Rectangle, sound_commits_of
from coordinator.progress.slices import begun
from coordinator.redis.group_state import ORDERINGS, GroupState, Handed, KnownTopic, check_schema
from coordinator.redis.lane_lines import lines_of
from coordinator.values.identifiers import LANE_EPOCH
from coordinator.values.ranges import HashRange, OffsetRange, is_number
from coordinator.values.subscription import TopicPartition

RedisHashes = Mapping[str, Mapping[str, str]]
"""Fields and values of each hash, by the part of its key after the group; an empty hash may be missing."""

T = TypeVar("T")
AT = "at"
"""The field of `end:<topic>` with the time of the look; `lua/show.lua` has it too."""

_NUMBERS = ("commit_seq", "reset_epoch", "epochs")
_TIMES = (
    "generation_at",
    "recovering_until",
    "computing_until",
    "session_ms",
    "longest_ms",
    "retention_ms",
    "grace_ms",
    "heard_at",
)
NUMBERS = (*_NUMBERS, "joins", "generation", *_TIMES, "duplicate_commits")
"""Fields of `meta` that hold a number; only the first three are always there."""

_DIGITS = 18  # the most that a number of `meta` may have
_NONCE = re.compile("[0-9a-f]{1,64}")
_OWNER = re.compile(rf"({LANE_EPOCH.pattern}) (\S+)")


def state_of(hashes: RedisHashes) -> GroupState:
    """The state in these hashes, without members and their leases; `StateFormatError` if it is damaged."""
    topics = read(hashes, "topics", lambda texts: {t: KnownTopic.parse(t, text) for t, text in texts.items()})
    stable, ends = _offsets("stable", offsets_at, topics, hashes), _offsets("end", ends_at, topics, hashes)
    looked = ((topic, read(hashes, f"end:{topic}", looked_ms)) for topic in topics)
    read(hashes, "policy", policy_of)
    return GroupState(
        now_ms=0,
        meta=read(hashes, "meta", checked_meta),
        leases_ms={},
        members={},
        topics=topics,
        segments={tp: read(hashes, f"segments:{key(tp)}", partial(_segments, tp)) for tp in stable},
        owners={tp: read(hashes, f"owners:{key(tp)}", _owners) for tp in stable},
        stable=stable,
        ends=ends,
        ends_ms={topic: at for topic, at in looked if at is not None},
        ics={tp: ics for tp in stable if (ics := read(hashes, f"ics:{key(tp)}", _rectangles))},
        handed={tp: handed for tp in stable if (handed := read(hashes, f"handed:{key(tp)}", _handed))},
        assignment=read(hashes, "assignment", lambda texts: {m: ranges_of(text) for m, text in texts.items()}),
        growths=read(hashes, "growth", parsed),
        policy=hashes.get("policy", {}),
        lanes=read(hashes, "lanes", lambda texts: {member: lines_of(text) for member, text in texts.items()}),
        working={member: begun(text) for member, text in hashes.get("working", {}).items()},
    )


def read(hashes: RedisHashes, name: str, parse: Callable[[Mapping[str, str]], T]) -> T:
    """The parsed value of one of the hashes; an error names it."""
    try:
        return parse(hashes.get(name, {}))
    except StateFormatError as error:
        raise StateFormatError(f"{name!r}: {error.what}", error.remedy) from None


def key(tp: TopicPartition) -> str:
    """A partition in the form of keys."""
    return f"{tp.topic}:{tp.partition}"


def checked_meta(meta: Mapping[str, str]) -> Mapping[str, str]:
    """The `meta` of a group, checked: of this schema, with numbers in its number fields."""
    check_schema(meta)
    for name in ("nonce", "founding"):
        if not _NONCE.fullmatch(meta.get(name, "")):
            raise StateFormatError(f"{name} is {meta.get(name, '')!r}, not hex digits")
    if (ordering := meta.get("ordering", "key")) not in ORDERINGS:
        raise StateFormatError(f"ordering is {ordering!r}, not one of {', '.join(ORDERINGS)}")
    for name in NUMBERS:
        text = meta.get(name, "" if name in _NUMBERS else "0")
        if not (is_number(text) and len(text) <= _DIGITS):
            raise StateFormatError(f"{name} is {text!r}, not a number of at most {_DIGITS} digits")
    return meta


def partitions_of(topic: str, texts: Mapping[str, str]) -> dict[TopicPartition, str]:
    """The text of each partition in a hash of a topic, ascending."""
    for partition in texts:
        if not (is_number(partition) and int(partition) < PARTITIONS_MAX):
            raise StateFormatError(f"{partition!r} is not the number of a partition")
    return {TopicPartition(topic, int(p)): text for p, text in sorted(texts.items(), key=lambda item: int(item[0]))}


def offsets_at(topic: str, texts: Mapping[str, str]) -> dict[TopicPartition, int]:
    """The offset of each partition in a hash of a topic, ascending."""
    found = partitions_of(topic, texts)
    for tp, text in found.items():
        if not is_number(text):
            raise StateFormatError(f"partition {tp.partition} is recorded at {text!r}, not an offset")
    return {tp: int(text) for tp, text in found.items()}


def ends_at(topic: str, texts: Mapping[str, str]) -> dict[TopicPartition, int]:
    """The log end of each partition of a topic, ascending. Checks the time of the look too."""
    looked_ms(texts)
    return offsets_at(topic, {partition: text for partition, text in texts.items() if partition != AT})


def looked_ms(texts: Mapping[str, str]) -> int | None:
    """When a member looked at the log ends last, in ms since 1970 by the clock of Redis; None before the first look."""
    if (text := texts.get(AT)) is None:
        return None
    if not (is_number(text) and len(text) <= _DIGITS):
        raise StateFormatError(f"the time of the look is {text!r}, not a number of milliseconds")
    return int(text)


def _offsets(
    kind: str,
    parse: Callable[[str, Mapping[str, str]], Mapping[TopicPartition, int]],
    topics: Iterable[str],
    hashes: RedisHashes,
) -> dict[TopicPartition, int]:
    of_topics = (read(hashes, f"{kind}:{topic}", partial(parse, topic)) for topic in topics)
    return {tp: offset for of_topic in of_topics for tp, offset in of_topic.items()}


def _segments(tp: TopicPartition, texts: Mapping[str, str]) -> tuple[tuple[HashRange, int], ...]:
    return tuple((s.hashes, s.position) for s in Progress.parse_whole(tp, texts).segments)


def _rectangles(texts: Mapping[str, str]) -> tuple[Rectangle, ...]:
    return tuple(Rectangle(hashes, offsets) for hashes, done in sound_commits_of(texts).items() for offsets in done)


def _owners(texts: Mapping[str, str]) -> tuple[tuple[HashRange, str, str], ...]:
    return tuple(sorted((HashRange.parse(hashes), *_owner(hashes, value)) for hashes, value in texts.items()))


def _handed(texts: Mapping[str, str]) -> tuple[Handed, ...]:
    found = sorted(Handed(OffsetRange.parse(offsets), *_owner(offsets, value)) for offsets, value in texts.items())
    for left, right in pairwise(found):
        if right.offsets.start < left.offsets.until:
            raise StateFormatError(f"slices {left.offsets} and {right.offsets} overlap")
    return tuple(found)


def _owner(owned: str, value: str) -> tuple[str, str]:
    """Lane epoch and member."""
    found = _OWNER.fullmatch(value)
    if not found:
        raise StateFormatError(f"{owned!r} is recorded as owned by {value!r}, not <lane epoch> <member>")
    return found[1], found[2]
