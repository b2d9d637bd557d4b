"""The hash of a record, of 63 bits (rule: key-hash). mmh3 defines it; faster code elsewhere must agree bit by bit."""

import mmh3

from coordinator.values.ranges import HASH_MAX, HashRange


def hash_key(key: bytes) -> int:
    """The hash of a key, in [0, 2^63 - 1]; an empty key is a key."""
    return mmh3.hash64(key, seed=0, x64arch=True, signed=False)[0] >> 1


def hash_record(key: bytes | None, offset: int) -> int:
    """The hash of a record: of its key, or of its offset if the key is null, the same in each replay."""
    return hash_key(offset.to_bytes(8, "big") if key is None else key)


def cut_bound(i: int, n: int) -> int:
    """The first hash of piece `i` when the space is cut into `n` even pieces (rule: even-cuts)."""
    return i * (HASH_MAX + 1) // n


def cuts(n: int) -> tuple[HashRange, ...]:
    """`n` even pieces that tile the hash space exactly."""
    return tuple(HashRange(cut_bound(i, n), cut_bound(i + 1, n) - 1) for i in range(n))
