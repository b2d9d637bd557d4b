"""Policies and `sharing` at work, on real servers, without Spark (rule: sharing-policies)."""

import pytest

import kafka_groups
from applications import Application, all_whole, application, owners, restarted, take_turns, times_read
from coordinator.assignment.assignment_text import ranges_text
from coordinator.errors import IndividualCommitNotAllowedError, TopicRangeFetchNotAllowedError
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition, Topics
from group_services import Group, subscribed
from streams import keyed

pytestmark = pytest.mark.usefixtures("short_sessions")

GROUP, TOPIC = "accept.individual.commit", "accept.range.fetch"


def go_on_unshared(members: Group, tp: TopicPartition, *applications: Application) -> None:
    """They read all 15 records, and at no time do two of them own parts of the partition."""
    shared = []

    def done() -> bool:
        state = members.state
        shared.append(len(owners(state).get(tp, ())) > 1)
        return state.stable == {tp: 15}

    take_turns(applications, done, "they go on")
    assert not any(shared)


def test_a_policy_switched_off_and_on_while_two_members_share(members: Group, tp: TopicPartition) -> None:
    one, two = (application(members, subscribed(tp)) for _ in range(2))
    both = (one, two)
    take_turns(both, lambda: len(owners(members.state).get(tp, ())) == 2, "both own a part")
    for policy in (GROUP, f"{TOPIC}:{tp.topic}"):
        members.policies.set_policy({policy: "false"})
        take_turns(both, lambda: all_whole(members.state), f"{policy} is off: one of them owns it whole")
        members.kafka.produce(tp.topic, keyed(10))
        members.policies.set_policy({policy: "true"})
        take_turns(both, lambda: len(owners(members.state).get(tp, ())) == 2, f"{policy} is on: both own a part again")
    take_turns(both, lambda: members.state.stable == {tp: 25}, "everything is done")
    assert times_read(both, tp) == 25, "nothing was read twice, nothing left out"
    assert members.events.count("policy") == 4


def test_a_topic_that_is_not_shared_goes_out_whole_beside_one_that_is(members: Group, tp: TopicPartition) -> None:
    other = TopicPartition(members.kafka.create_topic("private"), 0)
    topics = Topics((tp.topic, other.topic))
    members.policies.set_policy({f"{TOPIC}:{other.topic}": "false"})
    both = [application(members, topics) for _ in range(2)]
    take_turns(both, lambda: {t: len(o) for t, o in owners(members.state).items()} == {tp: 2, other: 1}, "as allowed")


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        pytest.param("accept.individual.commit", IndividualCommitNotAllowedError, id="88: the group forbids it"),
        pytest.param("accept.range.fetch:{}", TopicRangeFetchNotAllowedError, id="89: the topic forbids it"),
    ],
)
def test_a_query_that_asks_for_parts_where_they_are_forbidden_fails_at_its_start(
    members: Group, tp: TopicPartition, policy: str, error: type[Exception]
) -> None:
    asking = application(members, subscribed(tp), demanding=True)
    members.policies.set_policy({policy.format(tp.topic): "false"})
    take_turns([asking], lambda: members.state.stable == {tp: 5}, "who runs already goes on")
    with pytest.raises(error, match=r"sharing=required is set") as refused:
        application(members, subscribed(tp), demanding=True)
    assert f"coop-kafka policy {members.name} --set {policy.format(tp.topic)}=true" in str(refused.value)
    take_turns([application(members, subscribed(tp))], lambda: True, "who asks for nothing starts")


def test_a_member_that_does_not_share_gets_a_whole_partition_or_nothing(members: Group) -> None:
    topic = members.kafka.create_topic("orders", partitions=3)
    alone = application(members, Topics((topic,)), sharing=False)
    sharing = [application(members, Topics((topic,))) for _ in range(3)]
    everybody = [alone, *sharing]
    take_turns(everybody, lambda: len({m for o in owners(members.state).values() for m in o}) == 3, "those that share")
    assert alone.member not in {m for o in owners(members.state).values() for m in o}, "its share is below a partition"
    sharing.pop().service.leave()
    take_turns([alone, *sharing], lambda: all_whole(members.state), "now there is one for each")
    assert len({m for o in owners(members.state).values() for m in o}) == 3


def test_the_upgrade_in_four_steps_is_a_plain_kafka_source_until_the_last(members: Group) -> None:
    topic = members.kafka.create_topic("orders", partitions=1)
    tp, both_topics = TopicPartition(topic, 0), Topics((topic,))
    members.policies.set_policy({GROUP: "false", f"{TOPIC}:{topic}": "false"})
    one, two = (application(members, both_topics, sharing=False) for _ in range(2))
    sent = 0

    def works_as_a_plain_source() -> None:
        nonlocal sent
        members.kafka.produce(topic, keyed(8, first=sent))
        sent += 8
        take_turns((one, two), lambda: members.state.stable == {tp: sent}, "what was sent is done")
        assert all_whole(members.state)
        assert times_read((one, two), tp) == sent

    works_as_a_plain_source()
    members.policies.set_policy({GROUP: "true"})  # step 1: the group
    works_as_a_plain_source()
    members.policies.set_policy({f"{TOPIC}:{topic}": "true"})  # step 2: the topic
    works_as_a_plain_source()
    one = restarted(members, one, both_topics, demanding=True)  # steps 3 and 4: the option, one after the other
    works_as_a_plain_source()
    two = restarted(members, two, both_topics, demanding=True)
    take_turns((one, two), lambda: len(owners(members.state)[tp]) == 2, "from here on they share")
    members.kafka.produce(topic, keyed(8, first=sent))
    take_turns((one, two), lambda: members.state.stable == {tp: sent + 8}, "together")
    one.service.leave()
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, topic) == {0: sent + 8}


def test_partition_order_is_one_lane_from_the_switch_on(members: Group, tp: TopicPartition) -> None:
    """Rule: partition-order. Lanes were ahead of each other, and two members had parts."""
    one, two = (application(members, subscribed(tp)) for _ in range(2))
    both = (one, two)
    take_turns(both, lambda: len(owners(members.state).get(tp, ())) == 2, "both own a part")
    members.kafka.produce(tp.topic, keyed(200))
    one.step()  # its lanes are ahead of the other's
    before = {id(each): len(each.read) for each in both}
    members.policies.set_policy({f"{TOPIC}:{tp.topic}": "false"})
    take_turns(both, lambda: len(members.state.owners[tp]) == 1 and all_whole(members.state), "one range, one owner")
    members.kafka.produce(tp.topic, keyed(50))
    take_turns(both, lambda: members.state.stable == {tp: 255}, "everything is done")
    assert times_read(both, tp) == 255, "nothing was read twice, nothing left out"
    last = [s for each in both for s in each.read[before[id(each)] :]][-1]
    assert (last.hashes, last.offsets.until) == (WHOLE, 255)
    assert len(members.state.segments[tp]) == 1, "the ranges have met"


def test_a_group_in_partition_order_is_one_task_for_each_partition_without_any_policy(members: Group) -> None:
    """Rule: one-ordering. Members share partitions, not parts of them, also after a loss of Redis."""
    topic = members.kafka.create_topic("orders", partitions=2)
    both = [application(members, Topics((topic,)), ordering="partition", sharing=False) for _ in range(2)]
    take_turns(both, lambda: {len(o) for o in owners(members.state).values()} == {1}, "one owner each")
    members.kafka.produce(topic, keyed(200))
    take_turns(both, lambda: sum(members.state.stable.values()) == 200, "everything is done")
    assert len({m for o in owners(members.state).values() for m in o}) == 2
    assert {s.hashes for each in both for s in each.read} == {WHOLE}, "no lane is a part of a partition"
    members.lose_everything()
    members.kafka.produce(topic, keyed(50))
    both[0].step()  # it recovers the group
    take_turns(both, lambda: sum(members.state.stable.values()) == 250, "it goes on after the loss")
    assert {s.hashes for each in both for s in each.read} == {WHOLE}
    assert members.state.meta["ordering"] == "partition"


@pytest.mark.parametrize("policy", [GROUP, f"{TOPIC}:{{}}"])
def test_redis_is_emptied_while_sharing_is_forbidden__nothing_is_shared(
    members: Group, tp: TopicPartition, policy: str
) -> None:
    """Rule: policies-survive. Running members recover, and so does a member that knows only its checkpoint."""
    one, two = (application(members, subscribed(tp)) for _ in range(2))
    take_turns((one, two), lambda: members.state.stable == {tp: 5}, "both work")
    members.policies.set_policy({policy.format(tp.topic): "false"})
    take_turns((one, two), lambda: all_whole(members.state), "one of them owns it whole")
    members.lose_everything()
    members.kafka.produce(tp.topic, keyed(10))
    one.step()  # it recovers the group
    go_on_unshared(members, tp, one, two)
    assert members.policies.policy().fields[policy.format(tp.topic)] == "false"
    for each in (one, two):
        each.service.leave()
    members.lose_everything()
    fresh = application(members, subscribed(tp))
    take_turns([fresh], lambda: all_whole(members.state), "a new member knows the mirror only")
    assert members.policies.policy().fields[policy.format(tp.topic)] == "false"


def test_a_forbidden_part_of_another_versions_assignment_is_rejected_with_code_90(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule: sharing-policies. The assignment in force gives halves, as a version without this policy would."""
    members.policies.set_policy({GROUP: "false"})
    one, two = (application(members, subscribed(tp)) for _ in range(2))
    take_turns((one, two), lambda: members.state.stable == {tp: 5}, "both work")
    left, right = WHOLE.cut((2**62,))
    halves = {one.service.state.life.member: {tp: (left,)}, two.service.state.life.member: {tp: (right,)}}
    for member, ranges in halves.items():
        members.redis.hset(GroupKeys(members.name).assignment, member, ranges_text(ranges))
    members.kafka.produce(tp.topic, keyed(10))
    go_on_unshared(members, tp, one, two)
    assert "rejected" in members.events
    assert "CONSUMER_RANGE_FETCH_NOT_ACCEPTED: code 90: " in caplog.text
    assert all_whole(members.state)


def test_nothing_proves_the_policies__the_strict_reading_holds_until_an_operator_sets_them(
    members: Group, tp: TopicPartition
) -> None:
    one = application(members, subscribed(tp))
    take_turns([one], lambda: members.state.stable == {tp: 5}, "it works")
    one.service.leave()
    text = f"coop-kafka v1 reset=0 topic={one.service.state.log.topics[tp.topic].id}"
    assert members.log().commit_group_offsets(members.name, {tp: (5, text)})  # a mirror without policies
    members.lose_everything()
    both = [application(members, subscribed(tp)) for _ in range(2)]
    members.kafka.produce(tp.topic, keyed(10))
    take_turns(both, lambda: members.state.stable == {tp: 15}, "they read")
    assert members.policies.policy().unknown
    assert all_whole(members.state)
    members.policies.set_policy({GROUP: "true"})
    take_turns(both, lambda: len(owners(members.state).get(tp, ())) == 2, "they share again")
