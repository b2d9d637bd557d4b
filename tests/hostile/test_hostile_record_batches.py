"""Record batches that a producer has forged, or that were damaged: each is read, or ends in an error that names it.

Nothing hangs, nothing crashes, and what is read is what kafka-python reads.
"""
# ruff: noqa: E501  a row of a table is a line

import gzip
import random
import struct
from collections.abc import Iterator
from time import monotonic

import lz4.frame
import pytest
import snappy
import zstandard
from kafka import KafkaConsumer

from bombs import COMPRESS, XERIAL_HEAD, bomb, record, records, resealed, sealed, varint
from coordinator.errors import CoopKafkaError
from read_wire import MIB, RECORDS, TP, compared, read, settings_only
from seeds import many
from spark_coop_source.fetch.raw_batches import ATTRIBUTES_AT, HEAD, MAGIC_AT
from wire_batches import CODECS, batch

PATIENCE_S = 20.0
"""For any of them: on a quiet machine none takes a second, and the damage they did took minutes."""


@pytest.fixture(scope="module")
def consumer() -> Iterator[KafkaConsumer]:
    with settings_only() as opened:
        yield opened


def mutated(chance: random.Random, wire: bytes) -> bytes:
    """Some bytes of a batch changed, cut out or repeated, or another count in its head; length and crc fit."""
    made = bytearray(wire)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(ATTRIBUTES_AT, len(made) if chance.random() < 0.8 else HEAD.size)
        match chance.randrange(6):
            case 0:
                made[at] = chance.randrange(256)
            case 1:
                made[at] ^= 1 << chance.randrange(8)
            case 2:
                made[at : at + 1] = bytes(chance.choices((0, 1, 127, 128, 255), k=4))
            case 3:
                del made[at : at + chance.randint(1, 5)]
            case 4:
                made += made[at : at + chance.randint(1, 40)]
            case _:
                count = chance.choice((0, 1, 2, 39, 41, 2**31 - 1, -1, -(2**31)))
                made[HEAD.size - 4 : HEAD.size] = count.to_bytes(4, "big", signed=True)
        made += bytes(max(0, HEAD.size + 1 - len(made)))
    return resealed(bytes(made))


@many(range(1_000))
@pytest.mark.parametrize("codec", CODECS)
def test_a_mutant_is_read_as_kafka_python_reads_it_or_refused_by_name(
    consumer: KafkaConsumer, codec: str, seeds: range
) -> None:
    chance = random.Random(seeds.start)
    wire = batch(RECORDS, 100, codec=codec)
    read_whole = 0
    for number in seeds:
        mutant = mutated(chance, wire)
        began = monotonic()
        try:
            read_whole += compared(consumer, mutant, chance.choice((100, 4 * MIB)))
        except AssertionError as error:
            raise AssertionError(f"mutant {number}: {error}") from error
        assert monotonic() - began < PATIENCE_S, number
    assert read_whole >= len(seeds) // 200, "mutants of which none is read compare nothing"


CHECKED = "check with Kafka's console consumer"
BATCH_OPTION, RECORD_OPTION = "raise maxBatchUncompressedBytes", "raise fetchMemory"
ONE = record(0, b"value")


def zstd_of(parts: int, size: int) -> bytes:
    return COMPRESS["zstd"](bytes(MIB) for _ in range(parts * size // MIB))


def skippable(size: int) -> bytes:
    return struct.pack("<II", 0x184D2A50, size) + bytes(size)


def old(magic: int, codec: int, value: bytes) -> bytes:
    """A compressed message of format v0 or v1; its crc does not fit."""
    rest = struct.pack(">bb", magic, codec) + (bytes(8) if magic else b"") + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 7, 4 + len(rest), 0) + rest


FORGED = [
    # bombs
    ("a gzip stream that holds 180 MB", lambda: bomb("gzip", 200, 900_000), "BATCH_TOO_LARGE", "holds more than 67108864", BATCH_OPTION),
    ("lz4 frames that hold 100 MB", lambda: bomb("lz4", 110, 900_000), "BATCH_TOO_LARGE", "holds more than", BATCH_OPTION),
    ("blocks of snappy that hold 100 MB", lambda: bomb("snappy", 110, 900_000), "BATCH_TOO_LARGE", "holds more than", BATCH_OPTION),
    ("a zstd stream that holds three gigabytes", lambda: sealed("zstd", 9, zstd_of(3, 1024 * MIB)), "BATCH_TOO_LARGE", "holds more than", BATCH_OPTION),
    ("a hundred zstd frames, each within the bound", lambda: sealed("zstd", 9, zstd_of(1, 32 * MIB) * 100), "BATCH_TOO_LARGE", "holds more than", BATCH_OPTION),
    ("a record of 32 MB in zstd", lambda: bomb("zstd", 1, 32 * MIB), "BATCH_TOO_LARGE", "offsets 0-0: a record of 335544", RECORD_OPTION),
    ("a record of 32 MB in gzip, between small ones", lambda: sealed("gzip", 3, COMPRESS["gzip"]([ONE, record(1, bytes(32 * MIB)), record(2)])), "BATCH_TOO_LARGE", "offsets 1-1: a record of 335544", RECORD_OPTION),
    ("a block of snappy that holds 20 MB, without a frame", lambda: sealed("snappy", 1, snappy.compress(record(0, bytes(20 * MIB)))), "BATCH_TOO_LARGE", "a snappy block of 209715", RECORD_OPTION),
    ("a record that claims a gigabyte", lambda: sealed("zstd", 1, COMPRESS["zstd"]([varint(2**30), bytes(8 * MIB)])), "BATCH_TOO_LARGE", "a record of 1073741829 bytes", RECORD_OPTION),
    ("a gzip stream that lies about what it holds", lambda: sealed("gzip", 100, COMPRESS["gzip"](records(100, 900_000)) + gzip.compress(b"")), "BATCH_TOO_LARGE", "holds more than", BATCH_OPTION),
    ("a block of snappy that holds more than a batch may", lambda: sealed("snappy", 7, XERIAL_HEAD + b"".join(struct.pack(">i", len(each)) + each for each in [snappy.compress(bytes(15 * MIB))] * 5)), "BATCH_TOO_LARGE", "holds more than", BATCH_OPTION),
    # work without content
    ("150,000 empty gzip members", lambda: sealed("gzip", 1, gzip.compress(b"", mtime=0) * 150_000), "KAFKA_ERROR", "more than 1000 members", CHECKED),
    ("100,000 empty lz4 frames", lambda: sealed("lz4", 1, lz4.frame.compress(b"") * 100_000), "KAFKA_ERROR", "more than 1000 frames", CHECKED),
    ("100,000 empty zstd frames", lambda: sealed("zstd", 1, zstandard.compress(b"") * 100_000), "KAFKA_ERROR", "a batch of 0 bytes that declares 1 records", CHECKED),
    ("100,000 zstd frames that are to be skipped", lambda: sealed("zstd", 1, skippable(3) * 100_000), "KAFKA_ERROR", "a batch of 0 bytes", CHECKED),
    ("200,000 empty blocks of snappy", lambda: sealed("snappy", 1, XERIAL_HEAD + b"\0\0\0\1\0" * 200_000), "KAFKA_ERROR", "a batch of 0 bytes", CHECKED),
    ("a record with a million headers", lambda: bomb("zstd", 1, 1, varint(1_000_000) + b"\0\0" * 1_000_000), "KAFKA_ERROR", "declares 1000000 headers, more than 100000", "set includeHeaders=false"),
    ("a record that claims 2^40 headers", lambda: sealed("none", 1, record(0, b"", varint(2**40))), "KAFKA_ERROR", "headers", "set includeHeaders=false"),
    # cut
    *((f"a {codec} stream without its end", lambda codec=codec: sealed(codec, 40, COMPRESS[codec](records(40, 3_000))[:-60]), "KAFKA_ERROR", "", CHECKED) for codec in CODECS),
    *((f"nothing where {codec} should be", lambda codec=codec: sealed(codec, 1, b""), "KAFKA_ERROR", "", CHECKED) for codec in CODECS),
    *((f"bytes that are not {codec}", lambda codec=codec: sealed(codec, 1, bytes(range(255, 155, -1))), "KAFKA_ERROR", f"not a {codec} stream", CHECKED) for codec in CODECS if codec != "none"),
    ("a codec that Kafka does not know", lambda: resealed(sealed("zstd", 1, ONE)[:22] + b"\7" + sealed("zstd", 1, ONE)[23:]), "ENVIRONMENT_MISMATCH", "compression type 7", "install coop-kafka"),
    ("snappy that declares four gigabytes", lambda: sealed("snappy", 1, b"\xff\xff\xff\xff\x0f" + b"\0" * 20), "KAFKA_ERROR", "declares 4294967295", CHECKED),
    ("a block of snappy that reaches beyond the batch", lambda: sealed("snappy", 1, XERIAL_HEAD + b"\x7f\xff\xff\xff" + snappy.compress(ONE)), "KAFKA_ERROR", "its end is missing", CHECKED),
    ("an lz4 frame that declares 2^62 bytes", lambda: sealed("lz4", 1, _lz4_of_size(2**62)), "KAFKA_ERROR", "not a lz4 stream", CHECKED),
    ("a zstd frame that declares 2^62 bytes", lambda: sealed("zstd", 1, b"\x28\xb5\x2f\xfd\xe0" + (2**62).to_bytes(8, "little") + b"\1\0\0"), "KAFKA_ERROR", "", CHECKED),
    # heads that lie
    *((f"no records by the head, one in it, {codec}", lambda codec=codec: sealed(codec, 0, COMPRESS[codec]([ONE]), last_delta=0), "KAFKA_ERROR", "declares 0 records", CHECKED) for codec in CODECS),
    ("two records by the head, one in it", lambda: sealed("none", 2, ONE), "KAFKA_ERROR", "", CHECKED),
    ("one record by the head, two in it", lambda: sealed("none", 1, ONE + record(1)), "KAFKA_ERROR", "do not end where their batch does", CHECKED),
    ("2^31 - 1 records by the heads of 16 batches", lambda: sealed("none", 2**31 - 1, ONE) * 16, "KAFKA_ERROR", "declares 2147483647 records", CHECKED),
    ("fewer than no records", lambda: sealed("none", -5, ONE, last_delta=0), "KAFKA_ERROR", "declares -5 records", CHECKED),
    ("a last offset before the first", lambda: sealed("none", 1, ONE, last_delta=-9), "KAFKA_ERROR", "of the offsets up to -9", CHECKED),
    ("more records than offsets", lambda: sealed("none", 2, ONE + record(1), last_delta=0), "KAFKA_ERROR", "declares 2 records", CHECKED),
    ("markers that are compressed", lambda: resealed(bomb("zstd", 1, 64)[:22] + b"\x24" + bomb("zstd", 1, 64)[23:]), "KAFKA_ERROR", "markers that is compressed", CHECKED),
    # records that lie
    ("a record of a negative length", lambda: sealed("none", 1, b"\1" + bytes(7)), "KAFKA_ERROR", "do not end where their batch does", CHECKED),
    ("a record whose length does not end", lambda: sealed("none", 1, b"\xff" * 20), "KAFKA_ERROR", "cannot be decoded", CHECKED),
    ("a key of 2^61 bytes", lambda: sealed("none", 1, varint(3 + 9 + 8) + b"\0\0\0" + varint(2**61) + bytes(8)), "KAFKA_ERROR", "longer than its batch", CHECKED),
    ("a value that reaches into the next record", lambda: sealed("none", 2, varint(7) + b"\0\0\0\1" + varint(30) + b"\0\0" + record(1, bytes(40))), "KAFKA_ERROR", "longer or shorter", CHECKED),
    ("a header whose length has more than 64 bits", lambda: sealed("none", 1, record(0, b"v", varint(1) + b"\xff" * 9 + b"\2")), "KAFKA_ERROR", "more than 64 bits", "set includeHeaders=false"),
    ("the same among many headers", lambda: sealed("none", 1, record(0, b"v", varint(40) + b"\xff" * 9 + b"\7" + b"\0\0" * 39)), "KAFKA_ERROR", "more than 64 bits", "set includeHeaders=false"),
    ("fewer than no headers", lambda: sealed("none", 1, record(0, b"v", b"\1")), "KAFKA_ERROR", "longer or shorter", CHECKED),
    ("two records of one offset", lambda: sealed("none", 2, ONE + ONE), "KAFKA_ERROR", "do not ascend", CHECKED),
    ("records in the wrong order", lambda: sealed("gzip", 2, COMPRESS["gzip"]([record(1), record(0)])), "KAFKA_ERROR", "do not ascend", CHECKED),
    ("a record before its batch", lambda: sealed("none", 2, record(-1) + record(0)), "KAFKA_ERROR", "do not ascend", CHECKED),
    ("a record behind its batch", lambda: sealed("none", 2, record(0) + record(5)), "KAFKA_ERROR", "do not ascend", CHECKED),
    ("pieces in the wrong order", lambda: sealed("zstd", 6, COMPRESS["zstd"](record(delta, bytes(2 * MIB)) for delta in (2, 3, 4, 5, 0, 1))), "KAFKA_ERROR", "do not ascend", CHECKED),
    ("a time beyond Spark's", lambda: sealed("none", 1, varint(15) + b"\0" + varint(2**62) + b"\0\1\0\0"), "KAFKA_ERROR", "beyond any Spark timestamp", "start after that record"),
    # before message format v2
    *((f"messages of v{magic} that hold 64 MB", lambda magic=magic: old(magic, 1, gzip.compress(bytes(64 * MIB))), "BATCH_TOO_LARGE", "message set of format v0 or v1", "message format v2") for magic in (0, 1)),
    ("a message of v1 within which one has no length", lambda: old(1, 1, gzip.compress(struct.pack(">qi", 0, -12) * 9)), "KAFKA_ERROR", "a message of -12 bytes", CHECKED),
    ("a message of v1 without its value", lambda: struct.pack(">qiIbbqi", 7, 18, 0, 1, 1, 0, -1), "KAFKA_ERROR", "without a value", CHECKED),
]  # fmt: skip


def _lz4_of_size(size: int) -> bytes:
    framed = bytearray(lz4.frame.compress(ONE, store_size=True))
    framed[6:14] = size.to_bytes(8, "little")
    return bytes(framed)


@pytest.mark.parametrize(("wire", "name", "what", "remedy"), [pytest.param(*row[1:], id=row[0]) for row in FORGED])
def test_a_forged_batch_is_refused_by_name(
    consumer: KafkaConsumer, wire: object, name: str, what: str, remedy: str
) -> None:
    forged = wire()  # type: ignore[operator]
    began = monotonic()
    with pytest.raises(CoopKafkaError) as refused:
        read(consumer, forged, check_crcs=forged[MAGIC_AT] == 2)
    assert monotonic() - began < PATIENCE_S
    assert refused.value.name == name
    assert str(TP) in refused.value.what
    assert what in refused.value.what
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("wire", "count"),
    [
        pytest.param(lambda: bomb("zstd", 60, 900_000), 60, id="54 MB of zeros in zstd"),
        pytest.param(lambda: bomb("gzip", 60, 900_000), 60, id="54 MB of zeros in gzip"),
        pytest.param(lambda: bomb("zstd", 300_000, 0), 300_000, id="300,000 records without anything in them"),
        pytest.param(
            lambda: sealed("gzip", 40, b"".join(COMPRESS["gzip"]([each]) for each in records(40, 9))),
            40,
            id="a gzip member for each record",
        ),
        pytest.param(
            lambda: sealed("zstd", 40, skippable(9) + b"".join(COMPRESS["zstd"]([each]) for each in records(40, 9))),
            40,
            id="a zstd frame for each record, behind one to be skipped",
        ),
        pytest.param(lambda: sealed("gzip", 0, COMPRESS["gzip"]([]), last_delta=3), 0, id="no records, compressed"),
        pytest.param(lambda: sealed("none", 0, b"", last_delta=3), 0, id="no records, as after compaction"),
        pytest.param(
            lambda: bomb("zstd", 3, 9, varint(90_000) + b"\0\0" * 90_000), 3, id="records with 90,000 empty headers"
        ),
    ],
)
def test_an_odd_but_sound_batch_is_read(consumer: KafkaConsumer, wire: object, count: int) -> None:
    read_rows = read(consumer, wire())  # type: ignore[operator]
    assert [row["offset"] for row in read_rows] == list(range(count))


def test_records_behind_the_wanted_offsets_of_a_large_batch_are_not_decoded(consumer: KafkaConsumer) -> None:
    parts = (record(delta, bytes(3 * MIB)) for delta in (0, 1, 2, 3, 4, 1, 0))
    wire = sealed("zstd", 7, COMPRESS["zstd"](parts))
    assert [row["offset"] for row in read(consumer, wire, until=2)] == [0, 1]
    with pytest.raises(CoopKafkaError, match="do not ascend"):
        read(consumer, wire)
