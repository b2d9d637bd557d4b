"""The mirror: the positions that Kafka's own group proves, and those that it does not prove."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from coordinator.errors import StateFormatError
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.mirror import (
    GroupOffsets,
    entries,
    entry,
    extents,
    growths,
    is_mirror,
    mirrored,
    of_this_schema,
    outgrown,
    policies,
    proven,
    usable,
    with_founding,
    with_policy,
)
from coordinator.progress.ownership import Fact, Facts
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from group_services import UNLIMITED, Group, TestClock, batch, subscribed
from streams import keyed

TP, OTHER, STRANGE = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("bills", 0)
TOPICS = {"orders": Topic("orders", "id-1", (0, 1))}
LOWER, UPPER = cuts(2)
GROWTH = Growth("orders", "id-1", 1, 2, 1_000, 601_000)
GROWN = entry(5, 0, "id-1", None, GROWTH)
READ = entry(5, 0, "id-1", Extent(3, 5), GROWTH)
OURS, OLD, PLAIN = entry(5, 0, "id-1", None), entry(5, 0, "id-0", None), (5, "")
LIKE_OURS = (5, "coop-kafka v1 reset=0 topic=id-1 and more")


@pytest.mark.parametrize(
    ("offsets", "is_ours", "may_use", "proof"),
    [
        pytest.param({}, False, {}, {}, id="no group, no proof"),
        pytest.param({TP: OURS}, True, {TP: OURS}, {TP: 5}, id="ours, of this very topic"),
        pytest.param(
            {TP: entry(5, 3, "id-1", None)},
            True,
            {TP: entry(5, 3, "id-1", None)},
            {TP: 5},
            id="ours, of any reset epoch",
        ),
        pytest.param({TP: OLD}, True, {}, {}, id="ours, of a topic that was re-created since"),
        pytest.param({STRANGE: OURS}, True, {}, {}, id="ours, of a topic that is not subscribed to"),
        pytest.param(
            {TP: PLAIN}, False, {TP: PLAIN}, {}, id="a plain consumer's offset begins a group, proves nothing"
        ),
        pytest.param({TP: GROWN}, True, {TP: GROWN}, {TP: 5}, id="ours, of a partition that came by a growth"),
        pytest.param({TP: READ}, True, {TP: READ}, {TP: 5}, id="ours, with the leader epoch under which it was read"),
        pytest.param(
            {TP: LIKE_OURS}, False, {TP: LIKE_OURS}, {}, id="a metadata text that only begins like ours is not ours"
        ),
        pytest.param(
            {TP: OURS, OTHER: PLAIN}, True, {TP: OURS, OTHER: PLAIN}, {TP: 5}, id="each partition is judged by itself"
        ),
        pytest.param(
            {TP: OLD, OTHER: PLAIN}, True, {OTHER: PLAIN}, {}, id="an old mirror leaves a plain offset usable"
        ),
    ],
)
def test_proofs_in_the_offsets_of_kafkas_group(
    offsets: GroupOffsets, is_ours: bool, may_use: GroupOffsets, proof: Mapping[TopicPartition, int]
) -> None:
    assert (is_mirror(offsets), usable(offsets, TOPICS), mirrored(offsets, TOPICS)) == (is_ours, may_use, proof)


@pytest.mark.parametrize("schema", ["0", "2", "10"])
def test_an_entry_of_another_schema_is_refused_by_name(schema: str) -> None:
    other = {TP: OURS, OTHER: (7, f"coop-kafka v{schema} other words")}
    with pytest.raises(StateFormatError, match=f"'g' holds an offset of orders-1 in schema '{schema}'"):
        of_this_schema(other, "g")


def test_a_text_that_only_begins_like_ours_is_refused_by_name() -> None:
    with pytest.raises(StateFormatError, match=r"in schema '1' of the mirror.*topic=id-1 and more"):
        of_this_schema({TP: LIKE_OURS}, "g")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"reset={'9' * 18} topic=id-1", id="a reset epoch that no checkpoint holds"),
        pytest.param("reset=0 topic=id-1 growth=2-4000000000@1-2", id="a growth to more partitions than a topic has"),
        pytest.param("reset=0 topic=id-1 growth=4-2@1-2", id="a growth to fewer partitions"),
        pytest.param(f"reset=0 topic=id-1 growth=2-4@{'9' * 40}-2", id="a time that Redis cannot hold"),
        pytest.param(f"reset=0 topic=id-1 epoch={2**31}", id="a leader epoch beyond Kafka's"),
        pytest.param("reset=\u0663 topic=id-1", id="a digit of another script"),
    ],
)
def test_an_entry_with_a_number_that_no_other_form_can_hold_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError, match=r"in schema '1' of the mirror"):
        of_this_schema({TP: (5, f"coop-kafka v1 {text}")}, "g")


def test_entries_of_this_schema_and_of_plain_consumers_are_accepted() -> None:
    offsets = {TP: OURS, OTHER: PLAIN, STRANGE: (3, "coop-kafka is what I use")}
    assert of_this_schema(offsets, "g") == offsets


@pytest.mark.parametrize(
    ("mirror", "facts", "expected"),
    [
        pytest.param({}, {}, None, id="nothing proves nothing"),
        pytest.param({TP: 0}, {}, 0, id="a mirror at offset 0 is a proof"),
        pytest.param({}, {TP: (Fact(WHOLE, 0),)}, 0, id="a fact at offset 0 is a proof"),
        pytest.param({TP: 5}, {TP: (Fact(WHOLE, 9),)}, 9, id="facts that know more win"),
        pytest.param({TP: 9}, {TP: (Fact(WHOLE, 5),)}, 9, id="a mirror that knows more wins"),
        pytest.param({}, {TP: (Fact(LOWER, 7), Fact(UPPER, 4))}, 4, id="facts prove the lowest of their positions"),
        pytest.param({}, {TP: (Fact(LOWER, 7),)}, None, id="facts of half the hash space prove no stable offset"),
        pytest.param({TP: 2}, {TP: (Fact(UPPER, 7),)}, 2, id="facts of half the hash space do not raise the mirror's"),
        pytest.param({OTHER: 3}, {OTHER: (Fact(WHOLE, 4),)}, None, id="another partition proves nothing of this one"),
    ],
)
def test_proven(mirror: Mapping[TopicPartition, int], facts: Facts, expected: int | None) -> None:
    assert proven([TP], mirror, facts) == {TP: expected}


def test_the_mirror_names_growths_whose_partitions_still_wait() -> None:
    assert growths({OTHER: GROWN, TP: OURS}, TOPICS) == {GROWTH}
    assert growths({OTHER: entry(5, 0, "id-0", None, GROWTH)}, TOPICS) == set(), "of a topic that was re-created"
    assert growths({STRANGE: GROWN}, TOPICS) == set(), "of a topic that is not subscribed to"


def test_each_new_partition_names_its_own_growth_whatever_its_step() -> None:
    third, fourth = TopicPartition("orders", 2), TopicPartition("orders", 3)
    to_three, to_four = Growth("orders", "id-1", 2, 3, 1_000, 601_000), Growth("orders", "id-1", 3, 4, 2_000, 602_000)
    stable, grown = {TP: 5, OTHER: 5, third: 0, fourth: 0}, (to_three, to_four)
    written = entries(stable, 0, {"orders": "id-1"}, grown, {}, lambda _: None, "f1")
    four = {"orders": Topic("orders", "id-1", (0, 1, 2, 3))}
    assert written[TP] == written[OTHER] == with_founding(OURS, "f1")
    assert growths({third: written[third]}, four) == {to_three}
    assert growths({fourth: written[fourth]}, four) == {to_four}


def test_the_mirror_shows_which_topics_have_more_partitions_than_it_has() -> None:
    assert dict(outgrown({TP: OURS}, TOPICS)) == {"orders": 1}
    assert not dict(outgrown({TP: OURS, OTHER: OURS}, TOPICS)), "it knows them all"
    assert not dict(outgrown({OTHER: OURS}, TOPICS)), "of some partitions only: nobody knows how many there were"
    assert not dict(outgrown({TP: OLD}, TOPICS)), "of a topic that was re-created"
    assert not dict(outgrown({}, TOPICS)), "nothing"


def test_the_mirror_names_the_leader_epoch_under_which_the_log_reached_an_offset() -> None:
    assert extents({TP: READ, OTHER: GROWN}, TOPICS) == {TP: Extent(3, 5)}, "older texts do not have it"
    assert extents({TP: entry(5, 0, "id-0", Extent(3, 5))}, TOPICS) == {}, "of a topic that was re-created"
    assert entry(5, 0, "id-1", Extent(3, 4))[0] == 4, "a log not seen to reach the offset proves only so much"


@dataclass
class StandingClock(TestClock):
    """Goes on only where it is moved."""

    __test__ = False

    def now_ms(self) -> int:
        return 1_000_000 + self.skipped

    def wait(self, ms: int) -> None:
        super().wait(ms)
        self.skip(ms)


@pytest.fixture
def slow_members(members: Group) -> Group:
    members.clock = StandingClock()
    return members


def test_the_mirror_is_written_at_most_every_ten_seconds(slow_members: Group, tp: TopicPartition) -> None:
    service, end, offsets = slow_members.service(subscribed(tp), session_ms=60_000), StreamOffset(slow_members.name), []
    service.first_positions()
    for passes_ms in (0, 1_000, 8_000, 1_000):
        slow_members.clock.skip(passes_ms)
        end = batch(service, end)
        slow_members.kafka.produce(tp.topic, keyed(1))
        assert service.next_offset(end, UNLIMITED) is not None, "what was done is confirmed, and there is more"
        offsets.append((slow_members.state.stable[tp], slow_members.log().group_offsets(slow_members.name)[tp][0]))
    assert offsets == [(5, 5), (6, 5), (7, 5), (8, 7)], "the stable offset, and the mirror of the last call"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        pytest.param({}, None, id="no mirror"),
        pytest.param({TP: None, OTHER: None}, None, id="a mirror without policies"),
        pytest.param({TP: (True, True)}, (True, frozenset()), id="all is allowed"),
        pytest.param({TP: (False, True)}, (False, frozenset()), id="the group shares nothing"),
        pytest.param({TP: (True, True), STRANGE: (True, False)}, (True, frozenset({"bills"})), id="a topic in order"),
        pytest.param(
            {TP: (True, True), OTHER: (False, False)}, (False, frozenset({"orders"})), id="the strictest holds"
        ),
        pytest.param({TP: None, OTHER: (True, True)}, (True, frozenset()), id="entries without policies do not count"),
    ],
)
def test_policies_in_the_mirror(
    values: dict[TopicPartition, tuple[bool, bool] | None], found: tuple[bool, frozenset[str]] | None
) -> None:
    """Rule: policies-survive. They follow all other words of an entry."""
    offsets = {tp: with_policy(READ, value) for tp, value in values.items()}
    assert policies(offsets) == found
    assert mirrored(offsets, TOPICS) == {tp: 5 for tp in offsets if tp.topic == "orders"}
    assert growths(offsets, TOPICS) == ({GROWTH} if mirrored(offsets, TOPICS) else set())
