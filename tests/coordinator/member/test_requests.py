"""Requests: readable in a failing comparison, and fit for the store in Redis."""

from inspect import signature
from typing import Any

import pytest

from coordinator.member import requests
from coordinator.member.kinds import Kind
from coordinator.member.requests import Acquire, Finish, Log
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.store import store_of
from coordinator.values.ranges import WHOLE
from states import TP

KINDS = {name: kind for name, kind in vars(requests).items() if isinstance(kind, Kind)}
STORE = store_of(ScriptCalls(RedisClient("redis://localhost"), "g"))


def test_a_request_is_readable() -> None:
    assert repr(Finish({TP: 5}, {})) == f"Members.finish(targets={{{TP!r}: 5}}, pinned={{}})"
    assert repr(Log("lost")) == "World.log_line(text='lost', info=False)"


def test_a_request_refuses_arguments_that_its_method_does_not_have() -> None:
    with pytest.raises(TypeError, match="placed"):
        Acquire({TP: (WHOLE,)}, placed=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [k for k in KINDS.values() if k.part in {"Members", "Positions", "Poison", "Reports"}])
def test_the_store_in_redis_takes_the_arguments_of_each_request(kind: Kind[..., Any]) -> None:
    method = getattr(getattr(STORE, kind.part.lower()), kind.verb)
    assert list(signature(method).parameters)[kind.by_caller :] == list(kind.parameters.parameters)
