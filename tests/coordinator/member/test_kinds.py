"""Kinds of requests: their flags for `turns`, and the arguments of a request."""

from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from coordinator.member.kinds import Kind, call, function, member_call, notice, own_call, own_notice, redis_call
from coordinator.redis.replies import Answer, Caller


class Part(Protocol):
    """A part of an edge."""

    def read(self, topics: tuple[str, ...], limit: int = 3) -> int:
        """Read without a caller."""

    def write(self, caller: Caller, text: str) -> Answer[bool]:
        """Write as a member."""


def plain(number: int) -> int:
    """A plain function."""
    return number


# name -> kind, by_caller, of_redis, numbered, notice
KINDS: dict[str, tuple[Kind[..., Any], tuple[bool, bool, bool, bool]]] = {
    "a plain function": (function(plain), (False, False, False, False)),
    "a call of Kafka": (call(Part.read), (False, False, False, False)),
    "a call of Redis by anyone": (redis_call(Part.read), (False, True, False, False)),
    "a call of Redis by this member": (own_call(Part.write), (True, True, False, False)),
    "a call that renews the lease is numbered": (member_call(Part.write), (True, True, True, False)),
    "a notice is no call of Redis: no outage is waited for": (notice(Part.read), (False, False, False, True)),
    "a notice of this member": (own_notice(Part.write), (True, False, False, True)),
}


@pytest.mark.parametrize(("kind", "known"), KINDS.values(), ids=KINDS)
def test_kind(kind: Kind[..., Any], known: tuple[bool, ...]) -> None:
    assert (kind.by_caller, kind.of_redis, kind.numbered, kind.notice) == known


def test_a_request_has_all_arguments_by_name_without_the_part_and_the_caller() -> None:
    assert dict(redis_call(Part.read)(("orders",)).arguments) == {"topics": ("orders",), "limit": 3}
    assert dict(member_call(Part.write)("lost").arguments) == {"text": "lost"}
    assert dict(function(plain)(5).arguments) == {"number": 5}


def test_a_kind_finds_its_method_in_a_world() -> None:
    world = SimpleNamespace(read=len, part=SimpleNamespace(read=max))
    assert [k.of(world) for k in (call(Part.read), call(Part.read, lambda w: w.part))] == [len, max]
    assert (function(plain).of(world), function(plain).verb) == (plain, "plain")


def test_requests_are_equal_if_kind_and_arguments_are() -> None:
    read = redis_call(Part.read)
    assert read(("orders",)) == read(topics=("orders",), limit=3)
    assert read(("orders",)) != read(("returns",))
    assert read(("orders",)) != call(Part.read)(("orders",))
