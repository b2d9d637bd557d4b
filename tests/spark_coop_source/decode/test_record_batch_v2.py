"""Record batches are decoded as kafka-python decodes them, all at once, and damaged ones are refused."""

import random
from collections.abc import Sequence

import lz4.frame
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError, UnsupportedCodecError

from spark_coop_source.decode import record_batch_v2
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.record_batch_v2 import RawBatch, decoded
from wire_batches import CODECS, Written, batch, batches, plain, polled

MUCH = 2**30


def columns(chunks: Sequence[Chunk]) -> list[tuple[object, ...]]:
    """Record by record what the chunks hold."""
    read: list[tuple[object, ...]] = []
    for chunk in chunks:
        rows = np.arange(len(chunk))
        headers = [[(h["key"], h["value"]) for h in each or []] for each in chunk.headers.take(rows).to_pylist()]
        texts = [column.take(rows).to_pylist() for column in (chunk.keys, chunk.values)]
        numbers = [column.tolist() for column in (chunk.offsets, chunk.timestamps_ms, chunk.timestamp_types)]
        read += zip(*numbers, *texts, headers, strict=True)
    return read


def raw(wire: bytes) -> list[RawBatch]:
    return [record.value for record in polled(wire, raw=True)]


@given(batches, st.integers(1, 200), st.integers(1, 50_000))
def test_any_batches_are_decoded_as_kafka_python_does(
    written: list[tuple[list[Written], str]], rows: int, size: int
) -> None:
    wire, first = b"", 0
    for records, codec in written:
        wire += batch(records, first, codec=codec)
        first += len(records) + 3  # compaction leaves holes
    assert columns(list(decoded(raw(wire), rows, size))) == plain(wire)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_really_compresses_and_is_undone(codec: str) -> None:
    wire = batch([Written(b"k", b"x" * 1000)] * 100, codec=codec)
    (sent,) = raw(wire)
    assert sent.codec == CODECS[codec]
    assert (len(sent) < 50_000) == (codec != "none")
    assert columns(list(decoded([sent], 10, MUCH))) == plain(wire)


def test_small_batches_are_decoded_together_up_to_the_limits() -> None:
    wire = b"".join(batch([Written(b"k", b"v" * 50)] * 10, first) for first in range(0, 100, 10))
    assert [len(chunk) for chunk in decoded(raw(wire), 35, MUCH)] == [30, 30, 30, 10]
    assert [len(chunk) for chunk in decoded(raw(wire), 5, MUCH)] == [10] * 10, "a batch is decoded whole"
    assert [len(chunk) for chunk in decoded(raw(wire), MUCH, 1_000)] == [20] * 5


def test_batches_too_large_for_one_buffer_are_decoded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = batch([Written(b"k", b"v" * 400)]) + batch([Written(b"k", b"v" * 900)], 1, codec="gzip")
    monkeypatch.setattr(record_batch_v2, "MOST_BYTES", 1_000)
    assert [len(chunk) for chunk in decoded(raw(wire), 10, MUCH)] == [1, 1]


def test_frames_of_lz4_one_after_another_are_one_stream() -> None:
    (plain_one,) = raw(batch([Written(b"k", b"v" * 100)] * 4))
    payload = bytes(plain_one.payload)
    framed = lz4.frame.compress(payload[:50]) + lz4.frame.compress(payload[50:])
    (chunk,) = decoded([RawBatch(0, 3, 4, CODECS["lz4"], 0, None, framed)], 10, MUCH)
    assert len(chunk) == 4
    with pytest.raises(CorruptRecordError, match="not a lz4 stream"):
        list(decoded([RawBatch(0, 3, 4, CODECS["lz4"], 0, None, framed + b"more")], 10, MUCH))


def test_a_batch_is_decompressed_only_when_its_chunk_is_asked_for() -> None:
    good, broken = raw(batch([Written(b"k", b"v")]) + batch([Written(b"k", b"v" * 500)], 1, codec="gzip"))
    damaged = RawBatch(broken.base_offset, broken.last_offset, 1, broken.codec, 0, None, bytes(broken.payload)[:-12])
    chunks = decoded([good, damaged], 1, MUCH)
    assert len(next(chunks)) == 1
    with pytest.raises(CorruptRecordError, match="not a gzip stream"):
        next(chunks)


def test_the_broker_s_time_stands_for_all_records_of_a_batch_that_has_it() -> None:
    (sent,) = raw(batch([Written(b"k", b"v", 5), Written(b"k", b"v", 9)]))
    appended = RawBatch(7, 8, sent.count, sent.codec, sent.first_timestamp_ms, 1234, sent.payload)
    (chunk,) = decoded([appended], 10, MUCH)
    assert (chunk.offsets.tolist(), chunk.timestamps_ms.tolist()) == ([7, 8], [1234, 1234])
    assert chunk.timestamp_types.tolist() == [1, 1]


def test_an_unknown_codec_is_a_named_error() -> None:
    with pytest.raises(UnsupportedCodecError, match="compression type 5"):
        list(decoded([RawBatch(0, 0, 1, 5, 0, None, b"x")], 10, MUCH))


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_bytes_that_were_not_compressed_so_are_corrupt(codec: str) -> None:
    with pytest.raises(CorruptRecordError, match=f"not a {codec} stream"):
        list(decoded([RawBatch(0, 0, 1, CODECS[codec], 0, None, b"certainly not compressed")], 10, MUCH))


RECORD = batch([Written(b"key", b"value", 0, (("trace", b"1"),))])[61:]


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        pytest.param(RECORD, 2, id="fewer records than its count"),
        pytest.param(RECORD * 2, 1, id="more bytes than records"),
        pytest.param(RECORD[:-1], 1, id="a record that is cut"),
        pytest.param(b"\xff" * 12, 1, id="a length that does not end"),
        pytest.param(bytes([RECORD[0] + 2]) + RECORD[1:] + b"\0", 1, id="a record longer than its headers"),
        pytest.param(bytes([1]) + RECORD[1:], 1, id="a record of a negative length"),
        pytest.param(RECORD[:4] + b"\x7e" + RECORD[5:], 1, id="a key that reaches beyond the record"),
        pytest.param(b"", 1, id="nothing at all"),
    ],
)
def test_records_that_do_not_fit_their_batch_are_corrupt(payload: bytes, count: int) -> None:
    with pytest.raises((CorruptRecordError, ValueError)):
        columns(list(decoded([RawBatch(0, count, count, 0, 0, None, payload)], 10, MUCH)))


@given(st.randoms(use_true_random=False), st.integers(1, 6))
@settings(max_examples=300)
def test_damage_without_a_crc_check_is_never_more_than_a_refusal(chance: random.Random, changes: int) -> None:
    records = [Written(b"k%d" % i, None if i % 3 else b"v" * i, i, (("h", b"x"),) * (i % 3)) for i in range(40)]
    payload = bytearray(batch(records)[61:])
    for _ in range(changes):
        payload[chance.randrange(len(payload))] = chance.randrange(256)
    try:
        read = columns(list(decoded([RawBatch(0, 39, 40, 0, 0, None, bytes(payload))], 10, MUCH)))
    except (CorruptRecordError, ValueError):
        return
    assert len(read) == 40
