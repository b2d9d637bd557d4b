"""Requests: readable in a failing comparison, and fit for the store in Redis."""

import pytest

from coordinator.member.requests import Acquire, Finish, LogLine
from coordinator.values.ranges import WHOLE
from states import TP


def test_a_request_is_readable() -> None:
    assert repr(Finish({TP: 5}, {})) == f"RedisMembers.finish(targets={{{TP!r}: 5}}, pinned={{}}, in_order=frozenset())"
    assert repr(LogLine("lost")) == "World.log_line(text='lost', info=False)"


def test_a_request_refuses_arguments_that_its_method_does_not_have() -> None:
    with pytest.raises(TypeError, match="placed"):
        Acquire({TP: (WHOLE,)}, placed=True)  # type: ignore[call-arg]
