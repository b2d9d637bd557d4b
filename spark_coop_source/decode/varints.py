"""Kafka's variable-length integers (zigzag, 7 bits a byte, lowest first), many at once.

Knows nothing of their meaning.
"""

import numpy as np
from numpy.typing import NDArray

Wire = NDArray[np.uint8]
Places = NDArray[np.int64]

_BITS = 64
MORE_THAN_64_BITS = "a varint of more than 64 bits"


def _unzigzagged(raw: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)


def _of_every_pair() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each pair of bytes, the lower one first: the integer at its start, and its size; 0 for longer integers."""
    first, second = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    raw = np.where(first < 0x80, first, first & 0x7F | (second & 0x7F) << 7)
    sizes = np.where(first < 0x80, 1, np.where(second < 0x80, 2, 0))
    return _unzigzagged(raw.astype(np.uint64)), sizes


_VALUES, _SIZES = _of_every_pair()


def varints(wire: Wire, at: Places) -> tuple[NDArray[np.int64], Places]:
    """The integers that begin at each of `at`, and their ends. It uses the fastest of three ways that the data allows.

    Raises `ValueError` for more bytes than 64 bits need, `IndexError` beyond the end.
    """
    byte = wire[at]
    if not len(byte) or byte.max() < 0x80:
        return ((byte >> 1) ^ -(byte & 1)).view(np.int8).astype(np.int64), at + 1
    if at.max() < len(wire) - 1:
        pairs: NDArray[np.uint16] = np.ndarray(len(wire) - 1, "<u2", wire, strides=(1,))
        pair = pairs[at].astype(np.intp)
        sizes = _SIZES[pair]
        if sizes.all():
            return _VALUES[pair], at + sizes
    return _of_any_size(wire, byte, at)


def _of_any_size(wire: Wire, byte: Wire, at: Places) -> tuple[NDArray[np.int64], Places]:
    raw = (byte & 0x7F).astype(np.uint64)
    after = at + 1
    longer = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(longer):
        byte = wire[after[longer]]
        if shift == _BITS - 1 and (byte > 1).any():  # also if yet another byte follows
            raise ValueError(MORE_THAN_64_BITS)
        raw[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    return _unzigzagged(raw), after
