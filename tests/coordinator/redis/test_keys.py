"""The names of Redis keys: a group's name is encoded in them."""

import pytest

from coordinator.redis.keys import GroupKeys, encode

ON_EACH_SERVER = True


@pytest.mark.parametrize(
    ("group", "encoded"),
    [
        pytest.param("orders-1.a_b", "orders-1.a_b", id="plain names stay"),
        pytest.param("a b", "a%20b", id="spaces are encoded"),
        pytest.param("{x}", "%7Bx%7D", id="braces cannot make another hash tag"),
        pytest.param('"~\n', "%22%7E%0A", id="quotes, tildes and newlines are encoded"),
        pytest.param("é", "%C3%A9", id="other letters are encoded as UTF-8"),
    ],
)
def test_group_names_in_keys(group: str, encoded: str) -> None:
    assert encode(group) == encoded
    assert GroupKeys(group).meta == "coop:v1:{" + encoded + "}:meta"
