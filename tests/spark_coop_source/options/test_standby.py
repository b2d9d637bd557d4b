"""The triggers that a standby refuses. The hostile options have its conflicts with other options."""

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from coordinator.errors import ConflictingOptionsError
from spark_coop_source.driver.stream_reader import CoopKafkaStreamReader
from spark_coop_source.driver.wiring import group_settings
from spark_coop_source.options.options import validate

OPTIONS = {
    "kafka.bootstrap.servers": "localhost:9092",
    "subscribe": "orders",
    "group": "orders-to-lake",
    "redisUrl": "redis://localhost:6379/0",
}


def reader(standby: str) -> CoopKafkaStreamReader:
    return CoopKafkaStreamReader(validate(OPTIONS | {"standby": standby}, streaming=True))


def test_a_standby_refuses_runs_that_end_by_themselves() -> None:
    with pytest.raises(ConflictingOptionsError, match=r"runs with Trigger\.AvailableNow"):
        reader("true").prepareForTriggerAvailableNow()
    with pytest.raises(ConflictingOptionsError, match=r"runs with Trigger\.Once"):
        reader("true")._limits(ReadAllAvailable())


def test_every_other_query_may_run_once() -> None:
    assert reader("false")._limits(ReadAllAvailable()).everything


@pytest.mark.parametrize("standby", [True, False])
def test_the_member_knows_whether_it_is_a_standby(standby: bool) -> None:
    options = validate(OPTIONS | {"standby": str(standby).lower()}, streaming=True)
    assert group_settings(options, "orders-to-lake").standby is standby
