"""Offsets that a user commits one by one, ahead of the position (docs/protocol.md#individual-commits)."""

import json
from dataclasses import replace

import pytest

from commit_apis import api, batch_of, ranges, state
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import CodedError, CommitBeforeEndsError, CommitBeyondReadError, MaxIndividualCommitReachedError
from coordinator.progress.acknowledgement import Acknowledgement, strips_of
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import hash_record
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from log_fixtures import rows, task
from progresses import starting_at
from purgatory import Purgatory
from spark_coop_source.arrow_output.schema import NAMED
from spark_coop_source.fetch import consumers
from store_world import LOWER, OTHER, TP, UPPER, WANTED, World, lane, offset
from streams import eventually
from topics import Kafka, Record

ON_EACH_SERVER = True
A_READ, B_READ = OffsetRange.parse("40-44"), OffsetRange.parse("45-49")


def test_ics_may_vanish__those_deleted_before_a_plan_are_read_again(world: World) -> None:
    """Rule: ics-may-vanish. Individual commits may be deleted at any time."""
    me = world.owner({str(WHOLE): "43-45 48-49"}, p0=41)
    world.delete_ics()
    assert world.store.positions.acquire(me, WANTED).value.progress == {TP: starting_at(41)}


@pytest.mark.parametrize("text", ["45", "47-45", "a-b", "50-51 45-46", "45-47 46-48"])
def test_ics_may_vanish__damaged_ones_are_deleted_and_the_commit_goes_on(world: World, text: str) -> None:
    me = world.owner(p0=43)
    world.set_ics({str(LOWER): text, str(UPPER): "47-48"})
    assert world.commit(me, offset(lane("aa.1", 43, 44))) == {}
    assert (world.positions(), world.ics()) == ({str(LOWER): "44", str(UPPER): "44"}, {str(UPPER): "47-48"})
    assert len(world.events("mend")) == 1


def test_ics_may_vanish__a_look_has_only_sound_ones(world: World) -> None:
    world.found(p0=43)
    world.set_ics({str(WHOLE): "45-46", "damaged": "50"})
    assert world.store.positions.progress([TP, OTHER]) == {TP: Progress((Segment(WHOLE, 43, (OffsetRange(45, 47),)),))}


def test_commit_within_read__offsets_beyond_the_batch_are_refused_as_a_whole(world: World) -> None:
    """Rule: commit-within-read. A Commit API call names lane epochs."""
    api(world).close()
    with batch_of(world, lane("aa.1", 43, 100)) as commits:
        for given in ("100-100", "43-100", "43-44 199-199", f"43-{2**62 - 1}"):
            with pytest.raises(
                CommitBeyondReadError, match="includes offset 100, and the lanes of this batch end before it"
            ) as far:
                commits.commit(TP, ranges(given))
            assert far.value.reach == 100
        with pytest.raises(CommitBeyondReadError):
            commits.commit(TP, [], offset=101)
        with pytest.raises(CommitBeyondReadError, match="includes offset 100"):
            OrderedCommits(commits, "w").reserve(TP, OffsetRange(99, 101))
        assert state(world) == ({str(WHOLE): "43"}, {})
        assert commits.commit(TP, ranges("0-0 43-44 99-99")) == Committed(45, 1, 1, ())
        assert commits.commit(TP, [], offset=100).stable == 100


def test_commit_within_read__a_batch_that_may_end_early_takes_commits_from_its_seal_to_the_next_batch(
    world: World,
) -> None:
    """Before, a task may still end at 60, and after, Redis has forgotten that it did: nobody read 60-69."""
    api(world).close()
    caller, positions = world.caller("m-1"), world.store.positions
    first = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 43, 70),)}, early=1)
    then = replace(first, lanes={TP: (lane("aa.1", 60, 90),)})

    def refused(given: str, end: StreamOffset) -> bool:
        with CommitApi.of_offset(world.url, json.dumps(end.to_json())) as commits:
            try:
                commits.commit(TP, ranges(given))
            except CommitBeforeEndsError as error:
                assert "a task may end before the offsets that this batch planned" in error.what
                assert "commit rows by their acknowledgements" in str(error)
                return True
        return False

    assert refused("50-69", first), "not begun"
    positions.authorize(caller, first)
    assert refused("50-69", first), "under way"
    assert refused("45-45", first), "a part of it too"
    assert state(world) == ({str(WHOLE): "43"}, {})
    positions.seal(caller, first.digest, {TP: HashMap.of(WHOLE, 60)})
    with pytest.raises(CommitBeyondReadError, match="includes offset 60"):
        refused("50-69", first)
    assert not refused("50-59", first)
    positions.authorize(caller, then)
    assert refused("60-69", first), "over"
    assert refused("60-69", then)
    positions.seal(caller, then.digest, {})
    assert not refused("60-89", then), "all tasks read to the planned ends"
    assert refused("60-69", first), "another batch has a seal"
    assert state(world) == ({str(WHOLE): "43"}, {str(WHOLE): "50-89"})


def test_acknowledge_holes__each_covers_its_record_and_the_offsets_before_it_that_are_not_of_the_strip(
    kafka: Kafka,
) -> None:
    """Rule: acknowledge-holes.

    An acknowledgement covers the hashes of its strip, from the offset after the strip's previous record up to its
    own record.
    """
    topic, keys = kafka.create_topic("strip"), [b"key-%d" % number for number in range(12)]
    kafka.produce(topic, [Record(b"", key) for key in keys])
    mine = [offset for offset, key in enumerate(keys) if hash_record(key, offset) in LOWER]
    assert 1 < len(mine) < len(keys) - 1
    lanes = {TopicPartition(topic, 0): (lane("aa.1", 0, len(keys), LOWER),)}
    batch = StreamOffset("g", "m-1", 0, {topic: "id-1"}, lanes)
    found = rows(replace(task(kafka, batch.slices), columns=NAMED, strips=strips_of(batch, batch.slices)))
    consumers.close_idle()
    covered = [a.offsets for row in found for a in Acknowledgement.parse(str(row["acknowledgement"]))]
    assert [offsets.start for offsets in covered] == [0, *(offset + 1 for offset in mine[:-1])]
    assert [offsets.until - 1 for offsets in covered] == [*mine[:-1], len(keys) - 1], "the last one covers the rest"


def test_individual_commit_cap__only_commits_that_would_add_one_are_refused(world: World) -> None:
    """Rule: individual-commit-cap. A partition holds at most `maxIndividualCommits`."""
    commits = api(world, 43, "45-45 47-47 60-60", max_individual_commits=3)
    with pytest.raises(
        MaxIndividualCommitReachedError, match="exceeds the limit of 3 individual commits: the partition holds 3"
    ) as full:
        commits.commit(TP, ranges("50-50"))
    assert full.value.code == 92
    assert world.ics() == {str(WHOLE): "45-45 47-47 60-60"}
    assert commits.commit(TP, ranges("46-46")) == Committed(43, 2, 0, ())  # fills a gap
    assert commits.commit(TP, ranges("61-61")) == Committed(43, 2, 0, ())  # makes one longer
    assert commits.commit(TP, ranges("50-50")) == Committed(43, 3, 0, ())  # there is room again
    assert commits.commit(TP, ranges("43-44")) == Committed(48, 2, 0, ())


def test_ordered_commit__the_seven_steps_of_the_draft_kip(purgatory: Purgatory) -> None:
    """Rule: ordered-commit. A reservation is a rectangle."""
    a, b = purgatory.worker("A"), purgatory.worker("B")
    assert purgatory.stable == 39
    a.reserve(TP, A_READ)  # 1
    b.reserve(TP, B_READ)  # 2
    assert purgatory.shown == {"40-44": "m-1/A held", "45-49": "m-1/B held"}
    answer_to_b = purgatory.commits_meanwhile(b, B_READ)  # 3
    eventually(lambda: purgatory.shown["45-49"] == "m-1/B parked", "B's commit is in the purgatory")  # 4
    assert (answer_to_b.done(), purgatory.stable) == (False, 39)
    assert a.commit(TP, A_READ).stable - 1 == 44  # 5 and 6
    assert answer_to_b.result(timeout=10).stable - 1 == 49  # 7
    assert (purgatory.stable, purgatory.world.ics(), purgatory.shown) == (49, {}, {})


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (88, "INDIVIDUAL_COMMIT_NOT_ALLOWED"),
        (89, "TOPIC_RANGE_FETCH_NOT_ALLOWED"),
        (90, "CONSUMER_RANGE_FETCH_NOT_ACCEPTED"),
        (91, "INDIVIDUAL_COMMIT_TOO_OLD"),
        (92, "MAX_INDIVIDUAL_COMMIT_REACHED"),
    ],
)
def test_commit_error_codes__each_is_an_error_of_this_project(code: int, name: str) -> None:
    """Rule: commit-error-codes. Codes 88 to 92 are those of the draft KIP."""
    (kind,) = (k for k in CodedError.__subclasses__() if k.code == code)
    assert str(kind("it happened", "mend it")) == f"{name}: code {code}: it happened. Remedy: mend it."
