"""A megabyte from Kafka never takes more memory of a Python worker than docs/reading.md allows, with any content."""

import os
import random
import subprocess
import sys
from collections.abc import Callable

import pytest
import snappy
import zstandard

import decoding_memory
from bombs import COMPRESS, MIB, bomb, in_parts, record, records, sealed, varint
from broker_jars import ROOT

pytestmark = pytest.mark.long
MOST = 640 * MIB
"""The limit of docs/reading.md."""


def windowed() -> bytes:
    """Records of 95 MB from a zstd stream that looks 128 MB back."""
    params = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=params).compressobj()
    noise = random.Random(1).randbytes(4_000)
    parts = (stream.compress(record(delta, noise + bytes(95_000_000))) for delta in range(5))
    return sealed("zstd", 5, b"".join([*parts, stream.flush()]))


@pytest.mark.parametrize(
    ("made", "rows", "refused"),
    [
        pytest.param(lambda: bomb("zstd", 1_000, 900_000), 1_000, 0, id="1,000 records of 900 kB of zeros in zstd"),
        pytest.param(lambda: bomb("gzip", 300, 900_000), 300, 0, id="300 of them in gzip"),
        pytest.param(lambda: bomb("lz4", 250, 900_000), 250, 0, id="a megabyte of lz4 that is full of zeros"),
        pytest.param(
            lambda: sealed("snappy", 20, snappy.compress(b"".join(records(20, MIB)))),
            20,
            0,
            id="a megabyte of snappy that is one block",
        ),
        pytest.param(windowed, 5, 0, id="the largest records, and zstd's largest window"),
        pytest.param(
            lambda: sealed("zstd", 1, COMPRESS["zstd"](in_parts(0, 900 * MIB))), 0, 1, id="a single record of 900 MB"
        ),
        pytest.param(
            lambda: sealed("zstd", 8_200, COMPRESS["zstd"](records(2, MIB)) * 4_100), 0, 1, id="more than a gigabyte"
        ),
        pytest.param(lambda: bomb("zstd", 1_000_000, 0), 1_000_000, 0, id="a million records without anything in them"),
        pytest.param(
            lambda: bomb("zstd", 40, 9, varint(50_000) + b"\0\0" * 50_000), 40, 0, id="two million empty headers"
        ),
        pytest.param(
            lambda: sealed("none", 140_000, b"".join(records(140_000, 0))), 140_000, 0, id="140,000 records as they are"
        ),
    ],
)
def test_a_megabyte_from_kafka_takes_little_memory(made: Callable[[], bytes], rows: int, refused: int) -> None:
    wire = made()
    assert len(wire) <= 1.3 * MIB
    child = subprocess.run(
        [sys.executable, decoding_memory.__file__],
        input=wire,
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    read, passed_over, peak = map(int, child.stdout.split())
    assert (read, passed_over) == (rows, refused)
    assert peak < MOST
