"""A group in one line of `coop-kafka list`."""

from dataclasses import replace

from coordinator.tools.operations.group_list import GroupLine, group_line
from coordinator.tools.operations.views import view
from coordinator.values.ranges import WHOLE
from group_states import TP, group_state


def test_a_group_is_one_line_with_its_live_members() -> None:
    state = replace(group_state(((WHOLE, 5),)), now_ms=20, leases_ms={"m-1": 21, "m-2": 20, "m-3": 99})
    still_owned = {TP: ((WHOLE, "n.1", "m-2"),)}  # by the member whose lease has just ended, so `describe` shows it
    state = replace(state, ends={TP: 30}, ends_ms={"orders": 5}, meta={"nonce": "n"}, owners=still_owned)
    assert [m.member for m in view("g", state).members] == ["m-1", "m-2", "m-3"]
    assert group_line("g", state) == GroupLine("g", "PreparingRebalance", 2, 25, 0.015)


def test_a_group_without_log_ends_has_no_lag() -> None:
    assert group_line("g", group_state(((WHOLE, 5),))) == GroupLine("g", "Empty", 0, None, None)
