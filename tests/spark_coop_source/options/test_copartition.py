"""The option `copartition` as settings of a member; the rows that are refused are in tests/hostile."""

from spark_coop_source.driver.wiring import cutting, group_settings
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.options.options import validate

STREAM = {
    "kafka.bootstrap.servers": "broker:9092",
    "subscribe": "orders,payments,clicks",
    "group": "g",
    "redisUrl": "redis://localhost:6379",
}


def stream(**more: str) -> SourceOptions:
    return validate(STREAM | more, streaming=True)


def test_joined_topics_are_cut_alike_and_the_members_of_a_group_agree_on_them_as_on_an_assignor() -> None:
    options = stream(copartition="payments,orders")
    assert cutting(options).joined == ("orders", "payments")
    assert [a.name for a in group_settings(options, "g").assignors] == ["copartition=orders+payments"]


def test_a_read_of_a_stream_may_leave_topics_to_another_read_of_its_query() -> None:
    assert cutting(stream(subscribe="orders", copartition="orders,payments")).joined == ("orders", "payments")


def test_no_topics_are_joined_by_default() -> None:
    assert cutting(stream()).joined == ()
    assert [a.name for a in group_settings(stream(), "g").assignors] == ["grouped"]


def test_joined_topics_may_be_of_a_pattern() -> None:
    pattern = {name: text for name, text in STREAM.items() if name != "subscribe"} | {"subscribePattern": "s$"}
    assert cutting(validate(pattern | {"copartition": "a,b"}, streaming=True)).joined == ("a", "b")


def test_a_batch_joins_topics_without_a_group() -> None:
    batch = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "a,b", "copartition": "a,b"}
    assert cutting(validate(batch, streaming=False)).joined == ("a", "b")
