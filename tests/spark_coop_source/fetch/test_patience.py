"""A task's wait for brokers ends at its limit; one line tells of each wait that is not short."""

from time import monotonic

import pytest

from coordinator.errors import KafkaUnavailableError
from log_lines import own_lines
from spark_coop_source.fetch.patience import Patience

AWAY = KafkaUnavailableError("no leader answers for orders-1")
RECORDS = "the records of orders-1"
LINE = "no leader answers for orders-1; the records of orders-1 wait, for up to 60 s"


def test_each_wait_has_one_line__and_a_short_one_has_none(caplog: pytest.LogCaptureFixture) -> None:
    patience, now = Patience(60_000), monotonic()
    patience.wait(AWAY, now, RECORDS)
    assert own_lines(caplog) == []
    assert patience.away, "the time of the task shows nothing of its records, however short the wait"
    for _ in range(3):
        patience.wait(AWAY, now - 10, RECORDS)
    assert own_lines(caplog) == [LINE]
    patience.wait(AWAY, now - 5, RECORDS)
    assert own_lines(caplog) == [LINE] * 2


def test_at_its_limit_the_error_is_raised() -> None:
    with pytest.raises(KafkaUnavailableError, match="orders-1"):
        Patience(60_000).wait(AWAY, monotonic() - 61, RECORDS)
