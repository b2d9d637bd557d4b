"""Random stream offsets, for property tests."""

from hypothesis import strategies as st

from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.identifiers import RESET_MAX
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange, union
from coordinator.values.subscription import TopicPartition

offset_ranges = st.tuples(st.integers(0, 200), st.integers(1, 20)).map(lambda t: OffsetRange(t[0], t[0] + t[1]))


@st.composite
def stream_offsets(draw: st.DrawFn) -> StreamOffset:
    lanes = {}
    for topic, partition in draw(st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.integers(0, 12)), unique=True)):
        of_partition = []
        for hashes in cuts(draw(st.integers(1, 4))):
            offsets = union(draw(st.lists(offset_ranges, max_size=3)))
            position = offsets[0].start if offsets else draw(st.integers(0, 2**62))
            of_partition.append(Lane(hashes, f"abcd.{draw(st.integers(0, 9))}", position, offsets))
        lanes[TopicPartition(topic, partition)] = tuple(of_partition)
    ids = {tp.topic: f"id-{tp.topic}" for tp in lanes}
    epochs = {tp: draw(st.integers(0, 9)) for tp in lanes if draw(st.booleans())}
    return StreamOffset("g", "m-1", draw(st.integers(0, RESET_MAX)), ids, dict(sorted(lanes.items())), epochs)
