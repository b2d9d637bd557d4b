"""No lane reads records that are more than `maxLaneLead` ahead of the oldest unread one (rule: lane-lead)."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from lane_leads import lanes, reads

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_lane_that_may_not_read_does_not_hold_up_others() -> None:
    parked, other = lanes(10, 40)
    work = {A: (parked._replace(ceiling=10), other), B: lanes(100)}
    assert unread(work, {A: 100, B: 100}) == {A: OffsetRange(40, 100)}


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.lists(st.integers(0, 30), min_size=50, max_size=50))
def test_no_lane_reads_beyond_the_event_time_lead_and_one_lane_always_reads(
    positions: list[int], times: list[int]
) -> None:
    work, ends, lead = {A: lanes(*positions)}, {A: len(times)}, 5
    stretches = unread(work, ends)
    if not stretches:
        return
    oldest = times[stretches[A].start]
    later = next((o for o, t in enumerate(times) if t > oldest + lead), len(times))
    until = reads(within_lead(work, {A: later}, stretches), ends)[A]
    read = [range(p, u) for p, u in zip(positions, until, strict=True)]
    assert any(read)
    assert all(times[o] <= oldest + lead for offsets in read for o in offsets if o != stretches[A].start)
