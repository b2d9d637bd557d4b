"""The kinds of option value that make the record filter: key ranges, and keys as JSON or in a file.

Keys in a file are read where the options are checked: on the driver's host, when a query starts.
"""

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from coordinator.values.hash_map import HashMap
from coordinator.values.options import CHARACTERS
from coordinator.values.ranges import HashRange
from coordinator.values.record_filter import Key
from spark_coop_source.options.json_values import hash_ranges, json_of, short

FILE = "file:"
MOST_KEYS = 10_000
"""Keys of one list: the filter travels with each input partition."""

MOST_RANGES = 4_096
"""As many as a partition has lanes."""


@dataclass(frozen=True, slots=True)
class KeyRangesText:
    """Ranges of the key hash."""

    limit: str = f"JSON with 1 to {MOST_RANGES:,} ranges of the key hash, for example [[0,4611686018427387903]]"

    def parse(self, text: str) -> tuple[HashRange, ...]:
        """The ranges, ascending; neighbours are one."""
        ranges = json_of(text)
        if not isinstance(ranges, list) or not 1 <= len(ranges) <= MOST_RANGES:
            raise ValueError(f"not a list of 1 to {MOST_RANGES} ranges")
        return tuple(hashes for hashes, _ in HashMap((h, None) for h in hash_ranges(ranges)).coalesced())


@dataclass(frozen=True, slots=True)
class KeysText:
    """Keys: text, bytes in hex, or null, as JSON or in a file that holds this JSON."""

    limit: str = (
        f'JSON with 1 to {MOST_KEYS:,} keys, for example ["plane-1",{{"hex":"00ff"}},null], or file:/path of a file on '
        f"the driver's host with this JSON, at most {CHARACTERS:,} bytes"
    )

    def parse(self, text: str) -> frozenset[Key]:
        """The keys. Opens the file that the text names."""
        keys = json_of(_content(text.removeprefix(FILE)) if text.startswith(FILE) else text)
        if not isinstance(keys, list):
            raise ValueError("not a JSON list of keys")
        if not 1 <= len(keys) <= MOST_KEYS:
            raise ValueError(f"it has {len(keys)} keys, not 1 to {MOST_KEYS}")
        return frozenset(map(_key, keys))


def _key(key: object) -> Key:
    match key:
        case None:
            return None
        case str():
            return _encoded(key)
        case {"hex": str(digits), **rest} if not rest:
            return _bytes_of(digits)
    raise ValueError(f'{short(key)} is not a string, {{"hex":"..."}} or null')


def _encoded(key: str) -> bytes:
    try:
        return key.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{short(key)} holds half of a surrogate pair, which UTF-8 cannot write") from None


def _bytes_of(digits: str) -> bytes:
    if not re.fullmatch("(?:[0-9A-Fa-f]{2})*", digits):
        raise ValueError(f"{short(digits)} is not an even number of hex digits")
    return bytes.fromhex(digits)


def _content(path: str) -> str:
    """The text of a file."""
    if "\0" in path or not Path(path).is_absolute():
        raise ValueError("its path is not absolute")
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # the open of a named pipe would wait for a writer
            raise ValueError("it is not a regular file")
        with Path(path).open("rb") as file:
            found = file.read(CHARACTERS + 1)
    except OSError as error:
        raise ValueError(f"the file cannot be read ({error.strerror})") from None
    if len(found) > CHARACTERS:
        raise ValueError(f"the file has more than {CHARACTERS} bytes")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8") from None
