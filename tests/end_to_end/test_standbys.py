"""A hot standby with Spark: two drivers by spark-submit, the owner killed, and triggers that a standby refuses."""

from collections import Counter

import pytest
from pyspark.errors import PySparkException

from coordinator.errors import ConflictingOptionsError
from coordinator.tools.operations.views import view
from coordinator.values.ranges import WHOLE
from drivers.driver import Driver
from drivers.fleet import SESSION_S, Fleet
from drivers.output import batches
from streams import Stream
from verdict import require

STANDBY = {"standby": "true"}
TAKEOVER_S = 30  # a look at the group and an acquisition, on a machine that is busy otherwise
FLEET = {"options": STANDBY}


def roles(fleet: Fleet) -> Counter[str]:
    """The states of the members, as `describe` has them."""
    state = fleet.state
    return Counter(m.state for m in view(fleet.group, state).members) if state else Counter()


def stands_by(fleet: Fleet, owner: Driver) -> None:
    """Wait until the other driver is a standby, beside the owner of everything."""
    fleet.until(lambda: roles(fleet) == {"working": 1, "standby": 1}, "the other one is a standby")
    assert fleet.held(owner).ranges[0] == (WHOLE,)


def test_a_standby_takes_over_from_a_killed_owner_which_is_the_standby_after_its_restart(fleet: Fleet) -> None:
    with fleet.producing():
        one = fleet.join("one")
        two = fleet.start("two")
        stands_by(fleet, one)
        lines = len(one.lines)
        fleet.until(lambda: len(one.lines) > lines + 2, "the owner goes on")
        assert [batch.deliveries for batch in batches(two.name, two.lines)] in ([], [()]), "Spark's empty batch at most"
        held, batch_s = fleet.held(one), fleet.longest_batch_s
        one.kill()
        assert fleet.until(lambda: fleet.working(two), "the standby owns all") <= SESSION_S + batch_s + TAKEOVER_S
        assert fleet.delivered(held) > 0  # in the first batch of a standby, which takes as long as it takes
        fleet.start("one")
        stands_by(fleet, two)
        two.ask_to_stop()
        fleet.until(two.stopped, "the owner stops")
        fleet.drivers.pop("two")
        fleet.until(lambda: fleet.working(one), "a normal stop hands over too")
        fleet.drivers["two"] = two
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    require(fleet.outcome().good, fleet.outcome())


@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"once": True}], ids=["AvailableNow", "Once"])
def test_a_run_that_ends_by_itself_refuses_to_be_a_standby(stream: Stream, trigger: dict[str, bool]) -> None:
    query = stream.start(trigger, **STANDBY)
    with pytest.raises(PySparkException, match=ConflictingOptionsError.name):
        query.awaitTermination()
    assert stream.sink.batches == []
