"""The two texts of a failing record in Redis."""

import pytest

from coordinator.errors import StateFormatError
from coordinator.progress.failing import MESSAGE_CHARACTERS, FailingRecord
from coordinator.values.subscription import TopicPartition

ORDERS = TopicPartition("orders", 3)
RECORD = FailingRecord(ORDERS, 0x2A, 17, 2, 1_700_000_000_000, error="ValueError", message="no such\ncustomer: 7")


def test_a_record_is_read_back_from_its_texts() -> None:
    assert RECORD.field == "orders 3 000000000000002a"
    assert FailingRecord.parse(RECORD.field, RECORD.text) == RECORD


def test_a_long_message_is_cut_and_the_value_is_small() -> None:
    long = FailingRecord(ORDERS, 1, 17, 2, 0, parked=True, error="E" * 500, message="m" * 5000)
    assert len(long.field) + len(long.text) < 1024
    assert FailingRecord.parse(long.field, long.text).message == "m" * MESSAGE_CHARACTERS


def test_half_surrogates_are_replaced() -> None:
    """A message may quote bytes that are not UTF-8, decoded by surrogateescape."""
    odd = FailingRecord(ORDERS, 1, 17, 2, 0, error="E\ud800", message="no customer \udcff")
    assert odd.text == "deferred 17 2 0 E? no customer ?"
    assert FailingRecord.parse(odd.field, odd.text).text == odd.text


@pytest.mark.parametrize(
    "value",
    ["", "deferred", "gone 1 1 1 E m", "deferred -1 1 1 E m", "deferred 1 x 1 E m", f"deferred {2**63} 1 1 E m"],
)
def test_a_damaged_record_is_refused(value: str) -> None:
    with pytest.raises(StateFormatError):
        FailingRecord.parse(RECORD.field, value)
