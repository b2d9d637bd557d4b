"""How many lanes a partition gets, and cuts that keep a lane's batch small (rule: cut-by-hash).

Pure numbers; by hash, never by offset, so that a key never spans two lanes. Who owns what, and how
far a lane reads, is `planning`.
"""

from coordinator.ranges import HASH_MAX, HashRange, OffsetRange

LANES_MAX = 4_096  # of one partition: what one script in Redis takes well below its time-out
LANES_OF_A_BATCH = 65_536
"""The most lanes of all partitions that wishes of a user make: about 16 MB in the planner, 3 to 6 MB in an offset."""


def lane_count(partition_count: int, *, slots: int, lanes: int | None, min_partitions: int | None) -> int:
    """The number of even lanes for each of `partition_count` partitions that have something to read.

    `lanes` as the user fixed it, unless a batch has more than LANES_OF_A_BATCH then; else the smallest number that
    gives every slot a lane, and the batch `minPartitions` of them. 1 partition on 4 slots: 4 lanes; 3 partitions
    on 4 slots: 2 each; 9 partitions on 4 slots: 1 each.
    """
    if lanes is not None:
        return min(lanes, _most_lanes(partition_count))
    wanted = max(slots, min_partitions or 1)
    return min(LANES_MAX, max(1, -(-wanted // max(1, partition_count))))


def finest_piece(partition_count: int) -> int:
    """The fewest hashes of a piece that `cut_for_records` makes where so many partitions have something to read.

    A share of the hash space, not of what is cut: many ranges or lanes of a partition make no more pieces than one.
    """
    return -(-(HASH_MAX + 1) // _most_lanes(partition_count))  # up: a lane of as many even ones is not cut again


def _most_lanes(partition_count: int) -> int:
    return min(LANES_MAX, max(1, LANES_OF_A_BATCH // max(1, partition_count)))


def cut_for_records(hashes: HashRange, offsets: OffsetRange, max_records: int, finest: int) -> tuple[HashRange, ...]:
    """The fewest even pieces of `hashes` that each hold at most `max_records` of `offsets`.

    Records are counted as a slice's weight, offsets x share of the hash space: a hot key makes its
    piece larger than that. `finest` bounds their number: no piece needs to be smaller than so many hashes.
    """
    most = max(finest, max_records * (HASH_MAX + 1) // len(offsets))  # hashes in a piece
    n = -(-hashes.size // most)
    return tuple(hashes.cut(hashes.lo + i * hashes.size // n for i in range(1, n)))
