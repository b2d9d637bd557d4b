"""The servers that the store is tried on, beside the Valkey of all tests: a cluster, Redis 7 by TLS, Redis 6.2."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import redis
from redis.cluster import RedisCluster

import servers
from streams import eventually

KINDS = {"redis_url": "valkey", "cluster_url": "a cluster", "tls_url": "redis 7 by tls", "old_url": "redis 6.2"}
"""Fixtures that return the url of a server, with its kind."""
OTHER_KINDS = frozenset(KINDS) - {"redis_url"}
PARAMS = [
    pytest.param(fixture, id=kind, marks=[pytest.mark.long] if fixture in OTHER_KINDS else [])
    for fixture, kind in KINDS.items()
]

SLOTS = 16_384


@contextmanager
def valkey_cluster(folder: Path) -> Iterator[str]:
    """The url of a cluster of two nodes with half of the slots each."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(_node(folder / name)) for name in ("one", "two")]
        first, second = nodes
        first.cluster("ADDSLOTSRANGE", 0, SLOTS // 2 - 1)
        second.cluster("ADDSLOTSRANGE", SLOTS // 2, SLOTS - 1)
        place = second.connection_pool.connection_kwargs
        bus = second.config_get("cluster-port")["cluster-port"]
        first.cluster("MEET", place["host"], place["port"], bus)
        eventually(lambda: all(_knows_all(node) for node in nodes), "the nodes know each other", 20)
        yield f"redis://{place['host']}:{place['port']}?cluster=true"


@contextmanager
def _node(folder: Path) -> Iterator[redis.Redis]:
    folder.mkdir()
    port, bus = servers.free_ports(2)
    more = ("--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "5000")
    server = servers.start_valkey(folder, port, more=more)
    try:
        with closing(redis.Redis.from_url(server.address, decode_responses=True)) as client:
            yield client
    finally:
        server.stop()


def _knows_all(node: redis.Redis) -> bool:
    info = node.cluster("INFO")
    return (info["cluster_state"], info["cluster_known_nodes"], info["cluster_size"]) == ("ok", "2", "2")


@contextmanager
def redis_by_tls(folder: Path, certificates: Path) -> Iterator[str]:
    """The url of a Redis of this host's own that listens by TLS only."""
    (port,) = servers.free_ports(1)
    pem, authority = certificates / "server.pem", certificates / "authority.pem"
    settings = [
        "--port",
        "0",
        "--tls-port",
        str(port),
        "--bind",
        servers.HOST,
        "-127.0.0.2",
        "--tls-auth-clients",
        "no",
    ]
    settings += ["--tls-cert-file", str(pem), "--tls-key-file", str(pem), "--tls-ca-cert-file", str(authority)]
    url = f"rediss://{servers.HOST}:{port}/0?ssl_ca_certs={authority}"
    with servers.redis_running(servers.REDIS_SERVER, settings, folder, url):
        yield url


@contextmanager
def redis_6(folder: Path) -> Iterator[str]:
    """The url of a Redis 6.2, the oldest that we work with."""
    (port,) = servers.free_ports(1)
    url = f"redis://{servers.HOST}:{port}/0"
    with servers.redis_running(servers.REDIS_6, ["--port", str(port), "--bind", servers.HOST], folder, url):
        yield url


def nodes_of(client: redis.Redis | RedisCluster) -> list[redis.Redis]:
    """The server, or every node of the cluster."""
    if not isinstance(client, RedisCluster):
        return [client]
    return [node.redis_connection for node in client.get_primaries()]  # type: ignore[no-untyped-call]


def node_of(cluster: redis.Redis | RedisCluster) -> Callable[[str], str]:
    """host:port of the node that holds a key."""
    assert isinstance(cluster, RedisCluster)
    return lambda key: str(cluster.get_node_from_key(key).name)  # type: ignore[no-untyped-call]
