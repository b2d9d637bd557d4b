"""The kinds of option value that are text with rules: topic names, patterns, group names, Redis urls.

Messages never repeat a Redis url: if a user forgets to escape a password, the log must not show it.
"""

import re
from collections import Counter
from dataclasses import dataclass

from coordinator.assignment import ownership_listener
from coordinator.assignment.assignors import registry
from coordinator.errors import InvalidOptionError
from coordinator.errors.quoting import has_control_character, quoted
from coordinator.redis import urls
from coordinator.values.identifiers import GROUP_NAME_MAX
from coordinator.values.option_kinds import Flag
from coordinator.values.subscription import Pattern, Topics
from spark_coop_source.arrow_output.schema import NAMED

PATTERN_MAX = 10_000
LABELS_MAX, LABEL_VALUE_MAX = 64, 256
JOINED_MAX = 16  # each member reports them


def check_topic(name: str) -> str:
    """The name itself; a `ValueError` if Kafka allows no topic of that name."""
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in (".", ".."):
        raise ValueError(f"no topic can be called {quoted(name)}: Kafka allows 1 to 249 of A-Z a-z 0-9 . _ -")
    return name


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Topic names separated by commas; spaces around them and empty ones are ignored, as Spark does."""

    limit: str = "topic names separated by commas, for example orders,returns"

    def parse(self, text: str) -> Topics:
        """The topics, each once, in the order given."""
        names = dict.fromkeys(check_topic(name.strip()) for name in text.split(",") if name.strip())
        if not names:
            raise ValueError("it names no topic")
        return Topics(tuple(names))


@dataclass(frozen=True, slots=True)
class JoinedTopics:
    """Topics that are joined, separated by commas; spaces around them are ignored."""

    limit: str = f"2 to {JOINED_MAX} topic names, separated by commas, each once, for example orders,payments"

    def parse(self, text: str) -> tuple[str, ...]:
        """The topics, sorted: their order means nothing."""
        if (count := text.count(",") + 1) > JOINED_MAX:
            raise ValueError(f"it names {count} topics")
        names = [check_topic(name.strip()) for name in text.split(",")]
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise ValueError(f"the topic {twice[0]} occurs twice")
        if len(names) < 2:
            raise ValueError(f"it names one topic, {names[0]}")
        return tuple(sorted(names))


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A regular expression that matches anywhere in the names of topics."""

    limit: str = (
        f"a regular expression that Python understands, at most {PATTERN_MAX} characters, for example orders-.*"
    )

    def parse(self, text: str) -> Pattern:
        """The pattern without the spaces around it."""
        if len(text) > PATTERN_MAX:
            raise ValueError(f"the pattern has {len(text)} characters")
        if has_control_character(text.strip()):
            raise ValueError("the pattern has a line break or a control character")
        try:
            re.compile(text.strip())
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"not a regular expression ({error})") from None
        if not text.strip():
            raise ValueError("the pattern is empty")
        return Pattern(text.strip())


@dataclass(frozen=True, slots=True)
class ColumnNames:
    """Columns of a row, separated by commas."""

    limit: str = f"some of {', '.join(NAMED)}, separated by commas"

    def parse(self, text: str) -> tuple[str, ...]:
        """The named columns, in the order of a row."""
        names = {name.strip() for name in text.split(",")}
        unknown = ", ".join(sorted(names - set(NAMED)))
        if unknown or not text.strip():
            raise ValueError(f"no column is called {quoted(unknown)}")
        return tuple(name for name in NAMED if name in names)


@dataclass(frozen=True, slots=True)
class GroupName:
    """The name of a group: free text on one line, as Kafka's are."""

    limit: str = f"1 to {GROUP_NAME_MAX} characters without line breaks or control characters"

    def parse(self, text: str) -> str:
        """The name, every character kept."""
        if not text.strip():
            raise ValueError("the name is empty")
        if len(text) > GROUP_NAME_MAX:
            raise ValueError(f"the name has {len(text)} characters")
        if has_control_character(text):
            raise ValueError("the name has a line break or a control character")
        return text


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """The address of a Redis, with user, password and database in the ways redis-py reads."""

    limit: str = urls.LIMIT

    def parse(self, text: str) -> str:
        """The url itself, if redis-py can parse it."""
        urls.check_url(text)
        return text


@dataclass(frozen=True, slots=True)
class Labels:
    """Names and values as `zone=a,team=core`; spaces around them are ignored."""

    limit: str = (
        f"name=value, at most {LABELS_MAX} separated by commas, each name once and 1 to 64 of A-Z a-z 0-9 . _ -, each "
        f"value 1 to {LABEL_VALUE_MAX} bytes without control characters"
    )

    def parse(self, text: str) -> dict[str, str]:
        """The labels by name."""
        if (count := text.count(",") + 1) > LABELS_MAX:
            raise ValueError(f"it has {count} labels")
        pairs = [(name.strip(), value.strip()) for name, _, value in (x.partition("=") for x in text.split(","))]
        for name, value in pairs:
            _check_label(name, value)
        if twice := [name for name, times in Counter(name for name, _ in pairs).items() if times > 1]:
            raise ValueError(f"the name {twice[0]} occurs twice")
        return dict(pairs)


def _check_label(name: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name) or not value:
        raise ValueError(f"{quoted(f'{name}={value}')} is not name=value")
    if has_control_character(value):
        raise ValueError(f"the value {quoted(value)} of {name} has a line break or a control character")
    if (size := len(value.encode())) > LABEL_VALUE_MAX:
        raise ValueError(f"the value of {name} has {size} bytes")


@dataclass(frozen=True, slots=True)
class AssignorNames:
    """Assignors by preference: names, or a user's classes as `module:Class`, which must exist where the driver runs."""

    limit: str = (
        f"{', '.join(registry.NAMES)}, or a class of your own as module:Class; at most {registry.MOST}, by preference"
    )

    def parse(self, text: str) -> str:
        """The names, after a test that each can be loaded."""
        try:
            registry.assignors(text)
        except InvalidOptionError as error:
            raise ValueError(error.what) from error
        return text


@dataclass(frozen=True, slots=True)
class ListenerName:
    """A user's listener class as `module:Class`; it must exist where the driver runs."""

    limit: str = "a class of your own as module:Class, derived from spark_coop_source.OwnershipListener"

    def parse(self, text: str) -> str:
        """The name of an existing class; it makes no instance."""
        try:
            ownership_listener.check(text)
        except InvalidOptionError as error:
            raise ValueError(error.what) from error
        return text


@dataclass(frozen=True, slots=True)
class Ports:
    """A TCP port, or a range of ports with both ends."""

    limit: str = "a port from 1 to 65535, or a range like 40000-40010"

    def parse(self, text: str) -> range:
        """The ports, in the order in which they are tried."""
        found = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", text)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= 65_535:
            raise ValueError("it is neither a port nor a range of ports")
        return range(first, last + 1)


@dataclass(frozen=True, slots=True)
class SharingFlag:
    """The KIP's `allow.individual.commit`, in the words of the option `sharing`."""

    limit: str = "true or false"

    def parse(self, text: str) -> str:
        """Parts of partitions are required, or refused."""
        return "required" if Flag().parse(text) else "partitions"
