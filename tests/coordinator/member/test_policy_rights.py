"""A Kafka with an authorizer: a user without rights on the topic of policies is told, and follows what Redis has.

rule: cluster-policies. The topic may exist or not: Kafka gives a user without rights the same answer.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

import servers
from coordinator.assignment.policies import Policy
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import IndividualCommitNotAllowedError, KafkaAccessError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import POLICIES, TopicPartition
from group_services import UNLIMITED, Group, subscribed
from kafka_logs import kafka_log
from secure_listener import SecureListener
from streams import eventually, keyed
from topics import Kafka

pytestmark = pytest.mark.long
AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",  # the listener without a password: the administrator's
)
READ, WRITE, DESCRIBE = ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DESCRIBE
ICS = "accept.individual.commit"
WHY = "may not read the topic coop-kafka-policies, which need not exist"


@pytest.fixture(scope="module")
def broker(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A broker of these tests' own, which permits alice what ACLs say."""
    secure = servers.Secure(certificates / "server.pem", "alice", "wonder-land=1")
    server = servers.start_broker(tmp_path_factory.mktemp("guarded"), secure, more=AUTHORIZER)
    yield server
    server.stop()


@pytest.fixture
def admin(broker: servers.Server) -> Iterator[KafkaAdminClient]:
    """The administrator; each test begins without the topic of policies, and without rights on it."""
    with closing(KafkaAdminClient(bootstrap_servers=broker.address)) as made:
        yield made
        pattern = ResourcePatternFilter(ResourceType.TOPIC, POLICIES, ACLResourcePatternType.LITERAL)
        made.delete_acls([ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)])
    Kafka(broker.address).delete_topic(POLICIES)


def grant(admin: KafkaAdminClient, kind: ResourceType, name: str, *operations: ACLOperation) -> None:
    """Permit alice these operations."""
    pattern = ResourcePattern(kind, name)
    admin.create_acls([ACL("User:alice", "*", each, ACLPermissionType.ALLOW, pattern) for each in operations])


class Alice:
    """A user with the rights of a query, and a topic with 40 records in one partition."""

    def __init__(self, broker: servers.Server, authority: Path, admin: KafkaAdminClient, group: Group) -> None:
        self.group, kafka = group, Kafka(broker.address)
        self.tp = TopicPartition(kafka.create_topic("guarded"), 0)
        kafka.produce(self.tp.topic, keyed(40))
        grant(admin, ResourceType.TOPIC, self.tp.topic, READ)
        grant(admin, ResourceType.GROUP, group.name, READ)
        listener = SecureListener(str(broker.secure_address), authority, "alice", "wonder-land=1")
        self._settings = {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": listener.user,
            "sasl_plain_password": listener.password,
            "ssl_cafile": str(listener.authority),
        }
        self.log = kafka_log(listener.bootstrap, self._settings)
        eventually(lambda: self.may(lambda: self.log.bounds((self.tp,))), "the broker knows her rights")
        eventually(lambda: not self.may(self.log.cluster_policies), "and no right of an earlier test")

    @staticmethod
    def may(request: Callable[[], object]) -> bool:
        """Whether Kafka permits it: a broker applies a change of rights a moment after its answer."""
        try:
            request()
        except KafkaAccessError:
            return False
        return True

    def gets_read(self, admin: KafkaAdminClient, *more: ACLOperation) -> None:
        """Permit to read the topic of policies."""
        grant(admin, ResourceType.TOPIC, POLICIES, READ, *more)
        eventually(lambda: self.may(self.log.cluster_policies), "the broker knows the right")

    def member(self, **settings: object) -> Service:
        made = GroupSettings(self.group.name, capacity=2, session_ms=60_000, **settings)  # type: ignore[arg-type]
        return self.group.service(subscribed(self.tp), settings=made, log=self.log)

    def lanes(self, member: Service, start: StreamOffset | None = None) -> int:
        """The number of lanes of the next batch, which is not run."""
        member.first_positions()
        end = member.next_offset(start or StreamOffset(self.group.name), UNLIMITED)
        assert end is not None
        return len(end.lanes[self.tp])

    @property
    def reasons(self) -> list[str]:
        stream = GroupKeys(self.group.name).events
        entries = cast(list[tuple[str, dict[str, str]]], self.group.redis.xrange(stream))
        return [fields["why"] for _, fields in entries if fields["event"] == "policy"]


@pytest.fixture
def alice(
    broker: servers.Server, certificates: Path, admin: KafkaAdminClient, redis_url: str, group: str
) -> Iterator[Alice]:
    with closing(Group(Kafka(broker.address), redis_url, group)) as members:
        made = Alice(broker, certificates / "authority.pem", admin, members)
        with closing(made.log):
            yield made


def set_policy(broker: servers.Server, value: str) -> None:
    with closing(kafka_log(broker.address)) as log:
        log.set_cluster_policies({ICS: value})


@pytest.mark.parametrize("exists", [False, True], ids=["the topic is absent", "the topic is forbidden"])
def test_without_the_right_a_query_shares_and_one_warning_names_the_right(
    alice: Alice, broker: servers.Server, caplog: pytest.LogCaptureFixture, exists: bool
) -> None:
    if exists:
        set_policy(broker, "true")
    member = alice.member()
    with caplog.at_level(logging.WARNING, "coordinator"):
        assert alice.lanes(member) == 2
        alice.group.clock.skip(5_000)
        assert alice.lanes(member) == 2
    assert [WHY in record.message for record in caplog.records].count(True) == 1
    assert "grant the user READ on the topic coop-kafka-policies" in caplog.text
    assert alice.reasons == []


def test_what_redis_has_of_the_cluster_holds_for_a_member_without_the_right(
    alice: Alice, broker: servers.Server, admin: KafkaAdminClient
) -> None:
    """One member may read the topic; the next one may not."""
    set_policy(broker, "false")
    alice.gets_read(admin)
    assert alice.lanes(alice.member()) == 2, "accept.individual.commit rules assignments, not the lanes of one member"
    assert alice.reasons == [f"cluster:{ICS} is false"]
    pattern = ResourcePatternFilter(ResourceType.TOPIC, POLICIES, ACLResourcePatternType.LITERAL)
    admin.delete_acls([ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)])
    eventually(lambda: not alice.may(alice.log.cluster_policies), "the broker has taken the right away")
    other = alice.member()
    other.first_positions()
    other.next_offset(StreamOffset(alice.group.name), UNLIMITED)
    assert alice.reasons == [f"cluster:{ICS} is false"]
    assert alice.group.policies.policy().cluster == Policy(accept_individual_commit=False)


@pytest.mark.parametrize("exists", [False, True], ids=["the topic is absent", "the topic is forbidden"])
def test_where_policies_are_required_the_strict_reading_holds_and_a_warning_and_an_event_say_why(
    alice: Alice, broker: servers.Server, caplog: pytest.LogCaptureFixture, exists: bool
) -> None:
    if exists:
        set_policy(broker, "true")
    with caplog.at_level(logging.WARNING, "coordinator"):
        assert alice.lanes(alice.member(policies="required")) == 1
    assert [WHY in record.message for record in caplog.records].count(True) == 1
    assert "grant the user READ on the topic coop-kafka-policies" in caplog.text
    (reason,) = alice.reasons
    assert reason.startswith(f"cluster:{ICS} is unknown: a member may not read the topic coop-kafka-policies. ")


@pytest.mark.parametrize("exists", [False, True], ids=["the topic is absent", "the topic exists"])
def test_read_is_the_only_right_that_a_query_needs_on_it(
    alice: Alice, broker: servers.Server, admin: KafkaAdminClient, caplog: pytest.LogCaptureFixture, exists: bool
) -> None:
    alice.gets_read(admin)
    if exists:
        set_policy(broker, "true")
    with caplog.at_level(logging.WARNING, "coordinator"):
        assert alice.lanes(alice.member()) == 2
    assert WHY not in caplog.text
    assert alice.reasons == []


def test_who_may_describe_the_topic_and_not_read_it_does_not_know_the_policies(
    alice: Alice, broker: servers.Server, admin: KafkaAdminClient
) -> None:
    grant(admin, ResourceType.TOPIC, POLICIES, DESCRIBE)
    set_policy(broker, "true")
    assert alice.lanes(alice.member(policies="required")) == 1


def test_a_running_query_follows_once_its_user_gets_the_right(alice: Alice, admin: KafkaAdminClient) -> None:
    member = alice.member(policies="required")
    member.first_positions()
    end = member.next_offset(StreamOffset(alice.group.name), UNLIMITED)
    assert end is not None
    member.tasks(end)
    alice.gets_read(admin)
    alice.group.kafka.produce(alice.tp.topic, keyed(40, first=40))
    alice.group.clock.skip(5_000)
    assert alice.lanes(member, end) == 2
    assert alice.reasons[1:] == [f"cluster:{ICS} is at its default"]


def test_a_query_that_demands_parts_is_refused_with_the_right_that_is_missing(alice: Alice) -> None:
    with pytest.raises(IndividualCommitNotAllowedError, match="grant the user READ on the topic coop-kafka-policies"):
        alice.member(ordering="none", demanding=True, policies="required").check_policies()
    alice.member(ordering="none", demanding=True).check_policies()


def test_a_user_without_write_sets_no_policy(alice: Alice, broker: servers.Server, admin: KafkaAdminClient) -> None:
    set_policy(broker, "false")
    alice.gets_read(admin)
    with pytest.raises(KafkaAccessError):
        alice.log.set_cluster_policies({ICS: "true"})
    assert alice.log.cluster_policies()[1] == {ICS: "false"}


def test_the_rights_of_an_administrator_suffice_to_create_the_topic(alice: Alice, admin: KafkaAdminClient) -> None:
    alice.gets_read(admin, WRITE, ACLOperation.CREATE, ACLOperation.DESCRIBE_CONFIGS)
    for value in ("false", "true"):
        alice.log.set_cluster_policies({ICS: value})
        assert alice.log.cluster_policies()[1] == {ICS: value}
