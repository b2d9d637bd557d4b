"""Finds the places of a batch's records. The place of a record is known only after the record before it.

It alternates between two ways, as fits the data. Numpy finds a run of records of equal length at once. A loop finds
all others one by one; it is the only loop in Python over records.

Knows that a record is a varint, and as many bytes as that number.
"""

import numpy as np
from kafka.record.util import decode_varint

from spark_coop_source.decode.decompression import Payload
from spark_coop_source.decode.varints import Places

WORTH_IT = 32
"""Records of equal length in a row below which the loop is as fast."""

LONGEST_RUN = 4096
"""Records that numpy compares at once: a miss costs no more than that."""

FIRST_STRIDE, LONGEST_STRIDE = 64, 512
"""Records that the loop reads before numpy looks for equal lengths again. Doubled after each miss."""


def chained(data: Payload, at: int, count: int) -> tuple[list[Places], int]:
    """The places of `count` consecutive records from `at`, in pieces, and the end of the last record.

    Raises `IndexError` for a chain that leaves `data` (but not for its last record), `ValueError` for a length of more
    than 64 bits.
    """
    places = []
    stride = FIRST_STRIDE
    while count > 0:
        step = _end(data, at) - at
        run = _equal(data, at, step, min(count, LONGEST_RUN))
        if run >= WORTH_IT:
            piece = np.arange(at, at + run * step, step)
            at += run * step
            stride = FIRST_STRIDE
        else:
            found: list[int] = []
            at = _walked(data, at, min(count, stride), found)
            piece = np.array(found, np.int64)
            stride = min(2 * stride, LONGEST_STRIDE)
        places.append(piece)
        count -= len(piece)
    return places, at


def whole(data: Payload, at: int, until: int, count: int) -> tuple[list[Places], int]:
    """As `chained`, but only records that end before `until`. The end is the place of the first record that does not.

    Raises `ValueError` for a length of more than 64 bits.
    """
    places = []
    stride = FIRST_STRIDE
    while count > 0 and (step := _step(data, at, until)) is not None:
        run = _equal(data, at, step, min(count, LONGEST_RUN, (until - at) // step))
        if run >= WORTH_IT:
            piece = np.arange(at, at + run * step, step)
            at += run * step
            stride = FIRST_STRIDE
        else:
            found, at = _walked_within(data, at, until, min(count, stride))
            piece = np.array(found, np.int64)
            stride = min(2 * stride, LONGEST_STRIDE)
        places.append(piece)
        count -= len(piece)
    return places, at


def size_of(data: Payload, at: int) -> int:
    """Bytes of the record at `at`, with its length field; `ValueError` if `data` ends within that field."""
    try:
        return _end(data, at) - at
    except IndexError as error:
        raise ValueError("a record reaches beyond the end of its batch") from error


def _step(data: Payload, at: int, until: int) -> int | None:
    """The same; None for a record that does not end before `until`."""
    try:
        end = _end(data, at)
    except IndexError:
        return None
    return end - at if end <= until else None


def _equal(data: Payload, at: int, step: int, most: int) -> int:
    """Number of records from `at` on with the length of the first, whose size with its length field is `step`."""
    size = _varint_size(step)
    if data[at : at + size] != data[at + step : at + step + size]:
        return 1
    wire = np.frombuffer(data, np.uint8)
    run = most
    for place in range(at, at + size):
        column = wire[place : place + run * step : step]
        differs = column != column[0]
        first = int(differs.argmax())
        run = first if differs[first] else len(column)
    return run


def _varint_size(step: int) -> int:
    """Bytes of the length field of a record of `step` bytes. It may be one too large, which does no harm."""
    return 1 if step <= 64 else 2 if step <= 8193 else min(step, 5)


def _walked(data: Payload, at: int, count: int, places: list[int]) -> int:
    """Adds to `places`, and returns the end of the last record."""
    append = places.append
    for _ in range(count):
        append(at)
        byte = data[at]
        if byte < 0x80:
            at += 1 + (byte >> 1)
            continue
        second = data[at + 1]
        if second < 0x80:
            at += 2 + ((byte & 0x7F | second << 7) >> 1)
        else:
            at = _end(data, at)
    return at


def _walked_within(data: Payload, at: int, until: int, count: int) -> tuple[list[int], int]:
    """The places of the next `count` records that end before `until`, and the end of the last of them."""
    places: list[int] = []
    try:
        at = _walked(data, at, count, places)
    except IndexError:  # its length field lies beyond
        at = places.pop()
    while at > until:
        at = places.pop()
    return places, at


def _end(data: Payload, at: int) -> int:
    """The end of the record at `at`. A negative length, which is refused later, counts as a positive one."""
    size, after = decode_varint(data, at)
    return int(after + abs(size))
