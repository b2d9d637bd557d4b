"""The gaps above a stable offset: as `coop-kafka gaps` shows them."""

from coordinator.progress.segments import Rectangle
from coordinator.tools.fields import Inclusive
from coordinator.tools.operations.gaps import Gap, PartitionGaps, gaps
from coordinator.values.ranges import WHOLE, OffsetRange
from group_states import LOWER, UPPER, group_state


def test_gaps_are_the_missing_offsets_before_the_highest_done_offset() -> None:
    picture = group_state(((LOWER, 8), (UPPER, 24)), Rectangle(UPPER, OffsetRange(28, 30)))

    assert gaps(picture) == (
        PartitionGaps(
            "orders",
            0,
            8,
            30,
            (Gap(str(LOWER), 8, (Inclusive(8, 29),)), Gap(str(UPPER), 24, (Inclusive(24, 27),))),
        ),
        PartitionGaps("orders", 1, 3, 3, ()),
    )


def test_gaps_between_individual_commits_are_written_inclusive() -> None:
    """The example of the draft KIP: stable 42, [45-47] and [50-50] are done. Its stable offset is 43 here."""
    picture = group_state(((WHOLE, 43),), Rectangle(WHOLE, OffsetRange(45, 48)), Rectangle(WHOLE, OffsetRange(50, 51)))

    assert gaps(picture)[0].gaps == (Gap(str(WHOLE), 43, (Inclusive(43, 44), Inclusive(48, 49))),)
