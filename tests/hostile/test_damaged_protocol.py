"""Damaged texts of other members in Redis: the reader of each text refuses it by name.

`test_damaged_state` damages positions and owners in a real Redis; these are the texts of membership, one by one.
"""

from collections.abc import Callable

import pytest

from coordinator.assignment.assignment_text import ranges_of, seniority, subscriber
from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.assignment.policies import policy_of
from coordinator.assignment.protocols import preferences_of
from coordinator.errors import StateFormatError
from coordinator.plan.poison import Strike
from coordinator.progress.growth import Growth
from coordinator.values.key_hash import cuts

LOWER, UPPER = (str(h) for h in cuts(2))


def member(field: str) -> Callable[[str], object]:
    return lambda text: subscriber("m-1", {"topics": "orders", "capacity": "1", field: text})


def joined(text: str) -> object:
    return seniority(
        [Subscriber("m-1", 1, frozenset({"orders"}), metadata={"joined_at": text, "protocols": "grouped 1"})]
    )


def growth_of(value: str) -> object:
    return Growth.parse("orders 2 4", value)


def growth_named(field: str) -> object:
    return Growth.parse(field, "id-1 1000 2000")


def strike_of(value: str) -> object:
    return Strike.parse(f"orders 0 {LOWER}", value)


def strike_named(field: str) -> object:
    return Strike.parse(field, "struck 1 10-20 1000 m-1")


def group_policy(text: str) -> object:
    return policy_of({"accept.individual.commit": text})


def policy_named(name: str) -> object:
    return policy_of({name: "true"})


DAMAGED: dict[Callable[[str], object], dict[str, str]] = {
    ranges_of: {
        "an assignment that is no JSON": "{orders",
        "an assignment that is a list": "[]",
        "an assignment that is a number": "5",
        "an assignment without partitions": '{"orders":5}',
        "an assignment with partitions in a list": '{"orders":["0"]}',
        "an assignment with a partition that is no number": '{"orders":{"x":[]}}',
        "an assignment with a negative partition": '{"orders":{"-1":[]}}',
        "an assignment with a range that is a number": '{"orders":{"0":[5]}}',
        "an assignment with ranges that are nothing": '{"orders":{"0":null}}',
        "an assignment with one hash for a range": f'{{"orders":{{"0":["{LOWER[:16]}"]}}}}',
        "an assignment with an inverted range": f'{{"orders":{{"0":["{UPPER[17:]}-{LOWER[:16]}"]}}}}',
        "an assignment with hashes beyond 2^63": '{"orders":{"0":["8000000000000000-ffffffffffffffff"]}}',
    },
    member("capacity"): {
        "a capacity that is empty": "",
        "a capacity of nothing": "0",
        "a negative capacity": "-3",
        "a capacity with a fraction": "1.5",
        "a capacity in words": "much",
    },
    joined: {
        "a member that joined at no time": "",
        "a member that joined before 1970": "-5",
        "a member that joined yesterday": "yesterday",
    },
    preferences_of: {
        "no assignor at all": "",
        "an assignor without a version": "grouped",
        "an assignor with a version in words": "grouped one",
        "a version without an assignor": " 1",
        "a list of assignors that ends in a comma": "grouped 1,",
        "a list of assignors with a hole": "grouped 1,,range 1",
    },
    growth_of: {
        "a growth seen at no time": "id-1",
        "a growth without a topic id": "1000 2000",
        "a growth with ends that are no numbers": "id-1 1000 2000 a,b",
        "a growth with ends and a hole": "id-1 1000 2000 5,,7",
        "a growth with an extra field": "id-1 1000 2000 5,7 9",
    },
    growth_named: {
        "a growth from how many partitions": "orders 4",
        "a growth to no number of partitions": "orders 2 many",
        "a growth of no topic": "2 4",
    },
    strike_of: {
        "a strike without an offset": "1",
        "a strike at an offset in words": "1 ten 1000 m-1",
        "a strike of two members": "1 10 1000 m-1 m-2",
    },
    strike_named: {
        "a strike on no partition": f"orders {LOWER}",
        "a strike on a partition in words": f"orders one {LOWER}",
        "a strike on one hash": f"orders 0 {LOWER[:16]}",
    },
    group_policy: {
        "a policy that is neither true nor false": "maybe",
        "a policy that is empty": "",
        "a policy in capitals": "TRUE",
    },
    policy_named: {
        "a policy that there is not": "accept.everything",
        "a topic's policy without the topic": "accept.range.fetch",
    },
}


@pytest.mark.parametrize(
    ("parse", "text"),
    [pytest.param(parse, text, id=name) for parse, texts in DAMAGED.items() for name, text in texts.items()],
)
def test_it_is_refused_by_name(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(StateFormatError, match="Remedy"):
        parse(text)
