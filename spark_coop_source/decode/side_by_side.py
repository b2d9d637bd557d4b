"""Finds the places of records in many batches at once.

Within a batch, the place of a record is known only after the record before it. But batches are independent:

    batch 1   |a--|b----|c-|          the first step finds a, d and h, the second one b, e and i ...
    batch 2   |d-|e-|f---|g-|
    batch 3   |h----|i--|             done after two steps, the others go on

It is fast and skips checks. Where it does not apply, `record_places` does the work and names the fault in the data.
"""

import numpy as np
from numpy.typing import NDArray

from spark_coop_source.decode.varints import Places

WORTH_IT = 8
"""With fewer batches, a step costs more than a loop over their records."""


def _steps() -> NDArray[np.int64]:
    """The distance to the next record, by the first two bytes of a record's length; 0 for longer lengths."""
    low, high = np.arange(1 << 16) & 0xFF, np.arange(1 << 16) >> 8
    of_two = np.where(high < 0x80, 2 + ((low & 0x7F | high << 7) >> 1), 0)
    return np.where(low < 0x80, 1 + (low >> 1), of_two)


_STEPS = _steps()


def side_by_side(data: bytes, begins: Places, counts: NDArray[np.int64]) -> tuple[Places, Places] | None:
    """The places of all records, batch by batch, and the end of the last record of each batch.

    A length of more than two bytes, or a wrong one, leads to a wrong end. None if a record leads out of `data`, or
    if too few batches are about as long as the longest.
    """
    most = int(counts.max())
    if int(counts.sum()) < WORTH_IT * most or len(data) < 2:
        return None
    longest_first = np.argsort(-counts, kind="stable")
    active = np.searchsorted(-counts[longest_first], -np.arange(most))  # batches with more records than this
    at = begins[longest_first]
    found = np.empty((most, len(at)), np.int64)
    try:
        _walk(data, at, found, active.tolist())
    except IndexError:
        return None
    places, ends = np.empty_like(found), np.empty_like(at)
    places[:, longest_first], ends[longest_first] = found, at
    return places.T[np.arange(most) < counts[:, None]], ends


def _walk(data: bytes, at: Places, found: NDArray[np.int64], active: list[int]) -> None:
    """Step by step: writes the place in each batch to a row of `found`, and moves `at` one record on."""
    lengths: NDArray[np.uint16] = np.ndarray(len(data) - 1, "<u2", data, strides=(1,))  # the two bytes at any place
    for row, width in zip(found, active, strict=True):
        now = at[:width]
        row[:width] = now
        now += _STEPS[lengths[now].astype(np.intp)]
