"""The forms and limits of ids and numbers of a group, in checkpoints and in Redis.

    topic        orders           a name as Kafka allows it
    topic id     4fVq...          Kafka's, as text; "-" where brokers are too old to name any
    member       m-7f31c0de       minted when a query begins
    founding     9c41ab03         the first nonce of the group
    lane epoch   9c41ab03.17      nonce of the group's state, and a counter; "-" where nothing is shared
    reset epoch  1763900000000    the time of an operator's reset in ms, or one more than the last; 0 before the first
    position     241              the next offset to read

The scripts refuse the same texts (`arguments.lua`).
"""

import re
from functools import partial

from coordinator.errors import StateFormatError
from coordinator.errors.quoting import bounded, has_control_character, quoted
from coordinator.values.ranges import OFFSET_MAX, is_number

GROUP_NAME_MAX = 255
POSITION_MAX = OFFSET_MAX - 1  # no log ends at 2^63 - 1
RESET_MAX = 10**15 - 1  # the year 33658
PARTITION_MAX = LEADER_EPOCH_MAX = 2**31 - 1  # as Kafka's protocol holds them

LANE_EPOCH = re.compile(r"[0-9a-f]{1,64}\.(?:0|[1-9][0-9]{0,17})")


def _matching(pattern: re.Pattern[str], what: str, value: object) -> str:
    if not (isinstance(value, str) and pattern.fullmatch(value)):
        raise StateFormatError(f"{_shown(value)} is not {what}")
    return value


topic = partial(_matching, re.compile(r"[A-Za-z0-9._-]{1,249}"), "the name of a topic")
topic_id = partial(_matching, re.compile(r"[A-Za-z0-9._-]{1,64}"), "a topic id")
member = partial(_matching, re.compile(r"[A-Za-z0-9._-]{1,64}"), "a member id")
digest = partial(_matching, re.compile("[0-9a-f]{16}"), "a digest")
founding = partial(_matching, re.compile("[0-9a-f]{1,64}"), "the founding of a group")
lane_epoch = partial(_matching, re.compile(f"-|{LANE_EPOCH.pattern}"), "a lane epoch")
"""Each returns its argument; raises `StateFormatError`, like all functions here."""


def group(value: object) -> str:
    """The name of a group."""
    named = isinstance(value, str) and value.strip() and len(value) <= GROUP_NAME_MAX
    if not named or has_control_character(str(value)):
        raise StateFormatError(f"{_shown(value)} is not the name of a group")
    return str(value)


def number(value: object, most: int, what: str) -> int:
    """A whole number from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise StateFormatError(f"{what} {_shown(value)} is not a whole number from 0 to {most}")
    return value


def partition(text: object) -> int:
    """The number of a partition, of its text."""
    if not (isinstance(text, str) and is_number(text)):
        raise StateFormatError(f"{_shown(text)} is not a partition")
    return number(int(text), PARTITION_MAX, "partition")


def _shown(value: object) -> str:
    return quoted(value) if isinstance(value, str) else bounded(repr(value), 80)
