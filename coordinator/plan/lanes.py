"""The fixed number of lanes of a partition, and cuts that keep the batch of a lane small (rule: cut-by-hash).

Pure numbers. Ownership, and how far a lane reads, are in `planning`.
"""

from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange

LANES_MAX = 4_096  # of one partition: one script in Redis handles so many well within its time-out
LANES_OF_A_BATCH = 65_536
"""The most lanes of a batch, by options: about 16 MB in the planner, and 3 to 6 MB in an offset."""


def fixed_lanes(partition_count: int, lanes: int) -> int:
    """The user's number of lanes for each of so many partitions, or fewer: a batch has LANES_OF_A_BATCH at most."""
    return min(lanes, _most_lanes(partition_count))


def finest_piece(partition_count: int) -> int:
    """The fewest hashes of a piece of `cut_for_records`, if so many partitions have unread offsets."""
    return -(-(HASH_MAX + 1) // _most_lanes(partition_count))  # up: one of as many even lanes is not cut again


def _most_lanes(partition_count: int) -> int:
    return min(LANES_MAX, max(1, LANES_OF_A_BATCH // max(1, partition_count)))


def cut_for_records(hashes: HashRange, offsets: OffsetRange, max_records: int, finest: int) -> tuple[HashRange, ...]:
    """The fewest even pieces of `hashes` that each hold at most `max_records` of `offsets`.

    Records are counted as the weight of a slice: offsets x share of the hash space. A hot key makes its piece larger
    than that. A piece of a larger range has at least half of `finest` hashes, rounded down.
    """
    most = max(finest, max_records * (HASH_MAX + 1) // len(offsets))  # hashes in a piece
    n = -(-hashes.size // most)
    return tuple(hashes.cut(hashes.lo + i * hashes.size // n for i in range(1, n)))
