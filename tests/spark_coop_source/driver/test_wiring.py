"""What options choose: the fields of a member, and its settings."""

from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

import pytest

from coordinator.assignment.settings import MemberOptions
from spark_coop_source.driver.wiring import group_settings, member_fields, standalone_settings
from spark_coop_source.options.options import validate

STREAM = {
    "kafka.bootstrap.servers": "broker:9092",
    "subscribe": "orders",
    "group": "to-lake",
    "redisUrl": "redis://redis:6379",
}


def fields(**more: Any) -> dict[str, str]:
    return member_fields(validate({**STREAM, **more}, streaming=True))


def test_without_a_choice_there_are_none() -> None:
    assert fields() == {}


def test_rack_labels_and_the_topic_of_dead_letters() -> None:
    function = {"function": "operator:itemgetter", "functionSchema": "k binary", "functionTakes": "keys"}
    policy = {"functionOnError": '{"then": "dead_letter", "topic": "orders-dead"}'}
    found = fields(**function, **policy, **{"kafka.client.rack": "r1", "memberLabels": "app=billing"})
    assert found == {"rack": "r1", "dead_letters": "orders-dead", "label.app": "billing"}


def another(value: object) -> Any:
    """A value of the same option that is not the given one."""
    match value:
        case bool():
            return not value
        case int() | None:
            return (value or 0) + 7
        case _:
            return {"key": "none", "fail": "earliest", "optional": "required", "batches": "keys"}[str(value)]


@pytest.mark.parametrize("field", [field.name for field in fields_of(MemberOptions)])
def test_each_option_that_a_member_obeys_reaches_it(field: str) -> None:
    usual = validate(STREAM, streaming=True)
    chosen = another(getattr(usual, field))
    options = replace(usual, **{field: chosen})
    assert getattr(group_settings(options, "to-lake"), field) == chosen
    assert getattr(standalone_settings(options), field) == chosen
