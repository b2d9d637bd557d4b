"""The tables of `describe`: on a narrow terminal, and with unusual facts above them."""

import io

from rich.console import Console

from coordinator.tools.cli.tables import print_group
from coordinator.tools.operations.views import GroupView, GrowthView, LaneView, MemberView, PartitionView

WHOLE_TEXT = "0000000000000000-7fffffffffffffff"


def test_on_a_narrow_terminal_a_hash_range_breaks_at_its_dash() -> None:
    lane = LaneView(WHOLE_TEXT, 5, None, None, None)
    members, partitions = (MemberView("m-1", 0, "ended", {}),), (PartitionView("t", 0, 5, None, None, 0, (lane,)),)
    group = GroupView("g", "Empty", 0, "", 0, 0, {}, members, partitions)
    console = Console(file=io.StringIO(), width=80)

    print_group(group, console)

    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "0000000000000000- " in printed
    assert "7fffffffffffffff" in printed.splitlines()[-1]
    assert "nobody" in printed
    assert "ended" in printed


GROWTHS = (
    GrowthView("t", 1, 2, "all", ordered=True, grace_left_ms=0, waiting=False),
    GrowthView("t", 2, 4, "all", ordered=True, grace_left_ms=1_500, waiting=True),
    GrowthView("t", 4, 8, "all", ordered=True, grace_left_ms=0, waiting=True),
    GrowthView("t", 8, 9, "not all", ordered=False, grace_left_ms=9_000, waiting=True),
    GrowthView("t", 9, 10, "none", ordered=False, grace_left_ms=9_000, waiting=False),
)


def test_unusual_states_of_the_group_stand_above_the_tables() -> None:
    console = Console(file=io.StringIO(), width=120)

    print_group(
        GroupView("g", "Empty", 4, "grouped 1", 17, 2_500, {"accept.individual.commit": "false"}, (), (), GROWTHS),
        console,
    )

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "Group 'g': Empty, generation 4 by grouped 1",
        "Recovers from a loss of state, 2.5 s left",
        "Reset epoch 17",
        "Policy: accept.individual.commit=false",
        "Topic 't' grew from 2 to 4 partitions: new partitions wait; grace left: 1.5 s",
        "Topic 't' grew from 4 to 8 partitions: new partitions wait for the older ones",
        "Topic 't' grew from 8 to 9 partitions: not all; new partitions wait; grace left: 9.0 s",
        "Topic 't' grew from 9 to 10 partitions: none",
        "No positions yet.",
    ]
