"""Batches in a block are read one by one, and no byte of the others."""

import io

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_coop_source.cache.block_format import Packed, unpacked

SCHEMA = pa.schema([("value", pa.binary()), ("offset", pa.int64())])

batches = st.lists(st.lists(st.none() | st.binary(max_size=9), max_size=5), max_size=6)


def batch_of(values: list[bytes | None]) -> pa.RecordBatch:
    """As a slice of a larger batch, which is how they come."""
    arrays = [pa.array([b"before", *values, None], pa.binary()), pa.array(range(len(values) + 2), pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA).slice(1, len(values))


@given(batches, st.data())
def test_those_wanted_come_back_unless_they_are_empty(values: list[list[bytes | None]], data: st.DataObject) -> None:
    packed = Packed.of([batch_of(each) for each in values])
    file = io.BytesIO()
    packed.write(file)
    assert len(file.getvalue()) == packed.size
    assert packed.size == 0 or any(values)
    wanted = data.draw(st.lists(st.sampled_from(range(len(values))), unique=True)) if packed.size else []
    found = list(unpacked(lambda at, size: file.getvalue()[at : at + size], wanted, SCHEMA))
    assert [(n, batch.to_pylist()) for n, batch in found] == [
        (n, batch_of(values[n]).to_pylist()) for n in wanted if values[n]
    ]


def test_a_reader_of_one_batch_reads_its_place_and_its_bytes() -> None:
    packed = Packed.of([batch_of([b"x" * 10_000]), batch_of([b"small"]), batch_of([b"y" * 10_000])])
    file, read = io.BytesIO(), list[int]()
    packed.write(file)

    def counted(at: int, size: int) -> bytes:
        read.append(size)
        return file.getvalue()[at : at + size]

    ((number, batch),) = unpacked(counted, [1], SCHEMA)
    assert (number, batch.column("value").to_pylist()) == (1, [b"small"])
    assert sum(read) < 1_000
