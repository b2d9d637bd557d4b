"""The bytes of a join grow in proportion to the members, and no more (rule: owner-reads-own-segments)."""

from typing import cast

from applications import Application, application, owners, take_turns
from coordinator.values.subscription import TopicPartition
from group_services import Group, subscribed

MOST, FROM = 12, 4


def traffic(members: Group) -> int:
    """Bytes that Redis has received and sent so far."""
    stats = cast(dict[str, int], members.redis.info("stats"))
    return stats["total_net_input_bytes"] + stats["total_net_output_bytes"]


def test_the_traffic_of_a_join_grows_with_the_members_and_not_with_their_square(
    members: Group, tp: TopicPartition
) -> None:
    running: list[Application] = []
    spent: dict[int, int] = {}
    for count in range(1, MOST + 1):
        running.append(application(members, subscribed(tp)))
        running[-1].service.tasks(running[-1].done)  # joins
        before = traffic(members)
        for _ in range(3):  # an assignment; then members release parts of their ranges, and all acquire theirs
            for each in running:
                each.step()
        spent[count] = traffic(members) - before
    take_turns(running, lambda: len(set(owners(members.state)[tp])) == MOST, "each owns its part of one partition")
    shares = {count: spent[count] / count for count in spent}
    assert shares[MOST] < 2 * shares[FROM], f"bytes for each member of a group of so many: {shares}"
