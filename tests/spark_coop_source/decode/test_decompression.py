"""Codecs undone block by block: all that was compressed comes out, and no more is made at a time than may be."""

from collections.abc import Callable

import pytest
import snappy
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError, UnsupportedCodecError

from bombs import COMPRESS, MIB
from spark_coop_source.decode.decompression import BLOCK_BYTES, TooLargeError, blocks, fits
from wire_batches import CODECS

MUCH = 2**40
parts = st.lists(st.binary(max_size=3_000) | st.builds(bytes, st.integers(0, 300_000)), max_size=8)


@pytest.mark.parametrize("codec", CODECS)
@given(parts)
@settings(max_examples=40)
def test_all_that_was_compressed_comes_out(codec: str, given: list[bytes]) -> None:
    data = b"".join(given)
    payload = COMPRESS[codec](part for part in given if part)
    assert b"".join(blocks(CODECS[codec], memoryview(payload), MUCH)) == data
    assert fits(CODECS[codec], payload, len(data))
    assert codec in ("none", "snappy") or not data or not fits(CODECS[codec], payload, len(data) - 1)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=9))
@settings(max_examples=40)
def test_streams_one_after_another_are_one(codec: str, given: list[bytes]) -> None:
    payload = b"".join(COMPRESS[codec]([each]) for each in given)
    assert b"".join(blocks(CODECS[codec], payload, MUCH)) == b"".join(given)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_no_block_is_large_and_none_is_made_before_it_is_asked_for(codec: str) -> None:
    payload = COMPRESS[codec](bytes(MIB) for _ in range(40))
    whole = [len(block) for block in blocks(CODECS[codec], payload, BLOCK_BYTES)]
    assert (sum(whole), max(whole) <= BLOCK_BYTES) == (40 * MIB, True)
    cut = blocks(CODECS[codec], payload[: len(payload) * 3 // 4], BLOCK_BYTES)
    assert set(next(cut)) == {0}, "what is missing is not missed yet"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize(("most", "fitting"), [(40 * MIB, True), (40 * MIB - 1, False), (65_536, False)])
def test_a_payload_fits_up_to_the_bound(codec: str, most: int, fitting: bool) -> None:
    payload = COMPRESS[codec](bytes(MIB) for _ in range(40))
    assert fits(CODECS[codec], payload, most) is fitting


def test_a_block_of_snappy_is_measured_before_it_is_made() -> None:
    payload = snappy.compress(bytes(2 * MIB))
    assert list(blocks(CODECS["snappy"], payload, 2 * MIB)) == [bytes(2 * MIB)]
    with pytest.raises(TooLargeError, match="a snappy block of 2097152 bytes"):
        next(blocks(CODECS["snappy"], payload, 2 * MIB - 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(lambda payload: payload[:-9], "not a gzip stream: .*its end is missing", id="cut"),
        pytest.param(lambda payload: payload + b"more", "not a gzip stream", id="more behind it"),
        pytest.param(lambda payload: b"", "not a gzip stream: .*its end is missing", id="nothing"),
    ],
)
def test_damaged_gzip_is_corrupt(damage: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(CorruptRecordError, match=message):
        list(blocks(CODECS["gzip"], damage(COMPRESS["gzip"]([b"some"])), MUCH))


def test_gzip_may_be_padded_with_zeros() -> None:
    assert b"".join(blocks(CODECS["gzip"], COMPRESS["gzip"]([b"some"]) + bytes(9), MUCH)) == b"some"


def test_a_codec_that_kafka_does_not_use_is_not_supported() -> None:
    with pytest.raises(UnsupportedCodecError, match="compression type 6"):
        next(blocks(6, b"x", MUCH))
