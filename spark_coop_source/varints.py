"""Kafka's variable-length integers (zigzag, 7 bits a byte, lowest first), many at once.

Knows nothing of what they count.
"""

import numpy as np
from numpy.typing import NDArray

Wire = NDArray[np.uint8]
Places = NDArray[np.int64]

_BITS = 64


def varints(wire: Wire, at: Places) -> tuple[NDArray[np.int64], Places]:
    """The integers that begin at each of `at`, and where each ends.

    Raises `ValueError` for more bytes than 64 bits need, `IndexError` beyond the end.
    """
    byte = wire[at]
    raw = (byte & 0x7F).astype(np.uint64)
    after = at + 1
    longer = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(longer):
        if shift >= _BITS:
            raise ValueError("a varint of more than 64 bits")
        byte = wire[after[longer]]
        raw[longer] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[longer] += 1
        longer = longer[byte >= 0x80]
        shift += 7
    return _unzigzagged(raw), after


def _unzigzagged(raw: NDArray[np.uint64]) -> NDArray[np.int64]:
    return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64)
