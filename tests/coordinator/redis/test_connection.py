"""Every kind of Redis: one server or a cluster, by TLS, under the ACL of conf/; and wrong urls are named."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trustme

import redis_servers
from acl_users import OPERATOR
from coordinator.errors import (
    CoopKafkaError,
    InvalidOptionError,
    RedisAccessError,
    RedisConfigurationError,
    RedisTlsError,
    RedisUnavailableError,
)
from coordinator.redis.client import RedisClient
from coordinator.redis.connection import opened
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.redis.snapshot import list_groups
from group_life import Life

pytestmark = pytest.mark.server


@pytest.fixture(params=redis_servers.PARAMS)
def url(request: pytest.FixtureRequest) -> str:
    """The url of each kind of server."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def confined_url(url: str) -> Iterator[str]:
    """The same for the operator of conf/redis.acl, which every node knows."""
    with closing(opened(url, 5.0)) as administrator:
        nodes = redis_servers.nodes_of(administrator)
        for node in nodes:
            OPERATOR.added(node)
        yield OPERATOR.url(url)
        for node in nodes:
            node.execute_command("ACL", "DELUSER", OPERATOR.name)  # type: ignore[no-untyped-call]


def test_a_group_lives_under_the_acl_from_its_founding_to_its_deletion(confined_url: str) -> None:
    Life(confined_url).live()


def test_a_group_may_lie_on_another_node_than_the_list_of_groups(cluster_url: str) -> None:
    with closing(opened(cluster_url, 5.0)) as client:
        node_of = redis_servers.node_of(client)
        names = [f"g{i}" for i in range(20)]
        assert {node_of(GroupKeys(name).meta) == node_of(GROUPS) for name in names} == {True, False}


def refused(url: str) -> CoopKafkaError:
    """The result of a request for the list of groups."""
    with closing(RedisClient(url)) as client, pytest.raises(CoopKafkaError) as error:
        list_groups(client)
    assert "hunter2" not in str(error.value)
    return error.value


def test_the_error_of_a_cluster_node_asks_for_the_argument_cluster(cluster_url: str) -> None:
    with closing(opened(cluster_url, 5.0)) as client:
        names = {node.connection_pool.connection_kwargs["port"] for node in redis_servers.nodes_of(client)}
        elsewhere = names - {int(redis_servers.node_of(client)(GROUPS).rpartition(":")[2])}
    error = refused(f"redis://127.0.0.1:{elsewhere.pop()}")
    assert isinstance(error, RedisConfigurationError)
    assert "add ?cluster=true" in error.remedy


def test_one_server_with_the_argument_cluster_is_named(redis_url: str) -> None:
    error = refused(f"{redis_url}?cluster=true")
    assert isinstance(error, RedisConfigurationError)
    assert "is not a cluster" in error.what


def test_a_cluster_that_is_not_there_is_unavailable(cluster_url: str) -> None:
    error = refused("redis://:hunter2@127.0.0.1:1?cluster=true")
    assert isinstance(error, RedisUnavailableError)


def test_a_cluster_refuses_a_wrong_password_by_name(cluster_url: str) -> None:
    error = refused(cluster_url.replace("redis://", "redis://nobody:hunter2@"))
    assert isinstance(error, RedisAccessError)


def test_a_cluster_has_no_second_database() -> None:
    with pytest.raises(InvalidOptionError, match="database 3 of a cluster"):
        RedisClient("redis://:hunter2@host:6379/3?cluster=true")


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        pytest.param(("authority.pem", "other.pem"), RedisTlsError, "VERIFY_FAILED", id="another authority"),
        pytest.param(
            ("authority.pem", "junk.pem"), RedisTlsError, "TLS with the Redis", id="a file that holds no certificate"
        ),
        pytest.param(("authority.pem", "gone.pem"), InvalidOptionError, "no such file", id="a file that is not there"),
        pytest.param(("?", "?ssl_certfile=/none&"), InvalidOptionError, "ssl_certfile=/none", id="no key of our own"),
        pytest.param(("127.0.0.1", "127.0.0.2"), RedisTlsError, "mismatch", id="a host of no certificate"),
        pytest.param(
            ("rediss", "redis"), RedisUnavailableError, "does not answer", id="no TLS where the server wants it"
        ),
    ],
)
def test_a_fault_in_tls_is_named(
    tls_url: str, certificates: Path, change: tuple[str, str], kind: type[CoopKafkaError], words: str
) -> None:
    trustme.CA().cert_pem.write_to_path(certificates / "other.pem")
    (certificates / "junk.pem").write_text("junk")
    url = tls_url.replace(*change)
    error = refused(url.partition("?")[0] if url.startswith("redis:") else url)
    assert isinstance(error, kind)
    assert words in error.what


def test_the_error_of_tls_without_an_answer_has_a_remedy(redis_url: str, certificates: Path) -> None:
    error = refused(redis_url.replace("redis:", "rediss:") + f"?ssl_ca_certs={certificates / 'authority.pem'}")
    assert isinstance(error, RedisUnavailableError)
    assert "redis:// without" in error.remedy


def test_a_server_that_may_drop_positions_is_refused(old_url: str) -> None:
    with closing(opened(old_url, 5.0)) as administrator, closing(RedisClient(old_url)) as client:
        client.require_noeviction()
        administrator.execute_command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")  # type: ignore[no-untyped-call]
        with pytest.raises(RedisConfigurationError, match=r"allkeys-lru.*Remedy: set maxmemory-policy noeviction"):
            client.require_noeviction()
        administrator.execute_command("CONFIG", "SET", "maxmemory-policy", "noeviction")  # type: ignore[no-untyped-call]
