"""Checks that members and views can read the hashes of a copy, and can go on from them. Pure.

`group_texts.state_of` reads them as `coop-kafka describe` reads Redis. This module also reads strikes and leader
epochs, and checks that the parts fit: each position has its topic, and counters can still grow.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from coordinator.errors import StateFormatError
from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.progress.leader_epochs import parsed as extents_of
from coordinator.progress.segments import commits_of
from coordinator.redis.group_state import GroupState, KnownTopic
from coordinator.redis.group_texts import NUMBERS, RedisHashes, ends_at, key, partitions_of, read, state_of
from coordinator.values.identifiers import RESET_MAX
from coordinator.values.ranges import NUMBER
from coordinator.values.subscription import TopicPartition

LAST_MS = 253_402_300_799_999
"""The last moment that has a date: the end of the year 9999."""

_COUNT_MAX = 10**17
"""The limit of a counter: members count on from it, and it has 18 digits at most."""

_SEEN = "partitions "
"""In `meta`, begins the field with the most partitions of a topic that a member has seen; `prelude.lua` has it too."""

_TOPIC = "[A-Za-z0-9._-]{1,249}"
_COPIED = re.compile(
    f"meta|topics|policy|growth|strikes|failing|(?:stable|end|epoch):{_TOPIC}|(?:segments|ics):{_TOPIC}:{NUMBER}"
)
"""The copied keys, by their names after the group. Leases, owners and members belong to one life."""


def is_copied(name: str) -> bool:
    """Whether a key is part of a copy, by its name after the group."""
    return bool(_COPIED.fullmatch(name))


def check(hashes: Mapping[str, Mapping[str, object]]) -> None:
    """Raise `StateFormatError`, with key and field, for the first fault."""
    sound = {name: _texts(name, fields) for name, fields in hashes.items()}
    if "meta" not in sound:
        raise StateFormatError("it lacks 'meta'")
    state = state_of(sound)
    _check_complete(state, sound)
    read(sound, "meta", _check_counters)
    read(sound, "meta", _check_counts)
    read(sound, "strikes", _check_strikes)
    read(sound, "failing", _check_failing)
    for name in sound:  # also of topics that the group does not read yet
        kind, _, topic = name.partition(":")
        if kind in _OF_TOPIC:
            read(sound, name, partial(_OF_TOPIC[kind], topic))


def _texts(name: str, fields: Mapping[str, object]) -> dict[str, str]:
    if not is_copied(name):
        raise StateFormatError(f"it holds {name!r}, which is not a key of a copy")
    if not (isinstance(fields, dict) and fields):
        raise StateFormatError(f"{name!r} holds no fields")
    texts = {field: value for field, value in fields.items() if _is_text(field) and _is_text(value)}
    for field in fields.keys() - texts.keys():
        raise StateFormatError(f"{name!r}: field {field!r} is not text")
    return texts


def _is_text(word: object) -> bool:
    return isinstance(word, str) and not re.search("[\ud800-\udfff]", word)


def _check_complete(state: GroupState, hashes: RedisHashes) -> None:
    """Each topic has positions, each position its segments, and nothing belongs to another topic."""
    if not state.topics:
        raise StateFormatError("it lacks 'topics'")
    for topic in state.topics:
        if (name := f"stable:{topic}") not in hashes:
            raise StateFormatError(f"it lacks {name!r}, the stable offsets of a topic in 'topics'")
    for tp, stable in state.stable.items():
        _check_position(tp, stable, state)
    known = {f"stable:{topic}" for topic in state.topics}
    known |= {f"{kind}:{key(tp)}" for kind in ("segments", "ics") for tp in state.stable}
    for name in hashes:
        if name.startswith(("stable:", "segments:", "ics:")) and name not in known:
            raise StateFormatError(
                f"{name!r} belongs to no topic in 'topics', or to no partition in its stable offsets"
            )


def _check_position(tp: TopicPartition, stable: int, state: GroupState) -> None:
    if not state.segments[tp]:
        raise StateFormatError(f"it lacks 'segments:{key(tp)}', the positions of a partition in 'stable:{tp.topic}'")
    smallest = min(position for _, position in state.segments[tp])
    if stable != smallest:
        what = f"partition {tp.partition} is at {stable}, its smallest position in 'segments:{key(tp)}' is {smallest}"
        raise StateFormatError(f"'stable:{tp.topic}': {what}")


def _check_counters(meta: Mapping[str, str]) -> None:
    for name in NUMBERS:
        most = RESET_MAX if name == "reset_epoch" else _COUNT_MAX
        if int(meta.get(name, "0")) >= most:
            raise StateFormatError(f"{name} is {meta[name]}: it must be below {most}")


def _check_counts(meta: Mapping[str, str]) -> None:
    for name, text in meta.items():
        if name.startswith(_SEEN):
            KnownTopic.parse(name.removeprefix(_SEEN), text)


def _check_strikes(texts: Mapping[str, str]) -> None:
    for field, value in texts.items():
        strike = Strike.parse(field, value)
        if not strike.count or strike.at_ms > LAST_MS:
            raise StateFormatError(f"strike {field!r} is {value!r}: its count is 0, or its time is after the year 9999")


def _check_failing(texts: Mapping[str, str]) -> None:
    for field, value in texts.items():
        if FailingRecord.parse(field, value).next_ms > LAST_MS:
            raise StateFormatError(f"failing record {field!r} is {value!r}: its time is after the year 9999")


def _extents_at(topic: str, texts: Mapping[str, str]) -> object:
    return extents_of(partitions_of(topic, texts), 0, {})


def _commits_of(_: str, texts: Mapping[str, str]) -> object:
    return commits_of(texts)  # a view leaves damaged ones out; an operator can mend a file


_OF_TOPIC: Mapping[str, Callable[[str, Mapping[str, str]], object]] = {
    "end": ends_at,
    "epoch": _extents_at,
    "ics": _commits_of,
}
