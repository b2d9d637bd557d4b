"""The rules between `ordering` and other options; the rows that are refused are in tests/hostile."""

import pytest

from spark_coop_source.driver.wiring import cutting, group_settings
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.options.options import validate

STREAM = {
    "kafka.bootstrap.servers": "broker:9092",
    "subscribe": "orders",
    "group": "g",
    "redisUrl": "redis://localhost:6379",
}


def stream(**more: str) -> SourceOptions:
    return validate(STREAM | {name.replace("_", "."): value for name, value in more.items()}, streaming=True)


def test_a_member_without_order_shares_by_offsets_and_ends_no_task_early() -> None:
    options = stream(ordering="NONE", session_timeout="20s")
    settings = group_settings(options, "g")
    assert (settings.ordering, settings.session_ms, settings.early_ends) == ("none", 20_000, False)
    assert settings.demanding  # policies that forbid shared partitions refuse it
    assert cutting(options).by_offset


def test_a_member_in_partition_order_shares_no_partition() -> None:
    settings = group_settings(stream(ordering="partition"), "g")
    assert (settings.ordering, settings.sharing, settings.demanding, settings.early_ends) == (
        "partition",
        False,
        False,
        True,
    )


def test_order_by_key_is_the_default() -> None:
    settings = group_settings(stream(), "g")
    assert (settings.ordering, settings.session_ms, settings.early_ends) == ("key", 45_000, True)
    assert not cutting(stream()).by_offset


@pytest.mark.parametrize("name", ["minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger", "slots"])
def test_options_of_rates_work_without_order(name: str) -> None:
    assert validate(STREAM | {"ordering": "none", name: "5"}, streaming=True).ordering == "none"


def test_a_batch_ignores_the_ordering() -> None:
    batch = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders", "ordering": "none"}
    assert validate(batch, streaming=False).group is None
