"""Arrow columns over numpy's memory: numbers, and one repeated text.

`pa.array` of numpy's arrays and `pa.scalar` first load pandas, where it is installed. That takes a third of a second in
each new worker; a whole batch may take less.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_TYPES = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}


def numbers(values: NDArray[np.int32] | NDArray[np.int64], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """The values as a column over their memory, null where `nulls` is true."""
    valid = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    parts = [valid, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), parts)


def repeated(text: str, count: int) -> pa.Array:
    """The same text `count` times."""
    each = text.encode()
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(each))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(each * count)])
