"""The treatment of each `kafka.*` option: Java's consumer configuration (Kafka 4.2) under kafka-python.

Every name of Java's `ConsumerConfig` is in exactly one of the tables below.
"""

from collections.abc import Mapping

from coordinator.values.option_kinds import INT, LONG, Flag, Integer, OptionKind, Text, Word

PASSED: Mapping[str, OptionKind[object]] = {
    "allow.auto.create.topics": Flag(),
    "check.crcs": Flag(),
    "client.dns.lookup": Word(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"), any_case=False),
    "client.id": Text(),
    "client.rack": Text(),
    "connections.max.idle.ms": Integer(1, LONG),
    "fetch.max.bytes": Integer(0, INT),
    "fetch.max.wait.ms": Integer(0, INT),
    "fetch.min.bytes": Integer(0, INT),
    "isolation.level": Word(("read_uncommitted", "read_committed"), any_case=False),
    "max.partition.fetch.bytes": Integer(0, INT),
    "max.poll.records": Integer(1, INT),
    "metadata.max.age.ms": Integer(1, LONG),
    "metrics.num.samples": Integer(1, INT),
    "metrics.sample.window.ms": Integer(1, LONG),
    "receive.buffer.bytes": Integer(-1, INT),
    "reconnect.backoff.max.ms": Integer(0, LONG),
    "reconnect.backoff.ms": Integer(0, LONG),
    "request.timeout.ms": Integer(1, INT),
    "retry.backoff.ms": Integer(0, LONG),
    "send.buffer.bytes": Integer(-1, INT),
}
"""Passed to kafka-python under the same name with _ for the dots."""

UNDERSTOOD: Mapping[str, str] = {
    "bootstrap.servers": "Required. `host:port`, several separated by commas.",
    "group.id": "The same as `group`.",
    "heartbeat.interval.ms": "The same as `heartbeatInterval`.",
    "max.poll.interval.ms": "The same as `longestBatch`.",
    "session.timeout.ms": "The same as `sessionTimeout`.",
    "security.protocol": "PLAINTEXT (default), SSL, SASL_PLAINTEXT or SASL_SSL.",
    "ssl.truststore.type": "PEM, required with a location. JKS (Java's default) and PKCS12 are refused.",
    "ssl.truststore.location": "File with the certificates to trust, on the driver and on every executor. "
    "Without it and without `ssl.truststore.certificates`: the certificates that the system trusts.",
    "ssl.truststore.certificates": "The certificates themselves, as PEM text.",
    "ssl.truststore.password": "Refused, as Java refuses it with PEM.",
    "ssl.keystore.type": "PEM, required with a location. JKS (Java's default) and PKCS12 are refused.",
    "ssl.keystore.location": "File with the client's key and certificate chain, on the driver and on every "
    "executor. Unlike in Java, its key may be unencrypted.",
    "ssl.keystore.certificate.chain": "The client's certificate chain itself, as PEM text; with `ssl.keystore.key`.",
    "ssl.keystore.key": "The client's key itself, as PEM text.",
    "ssl.keystore.password": "Refused, as Java refuses it with PEM.",
    "ssl.key.password": "The password of the encrypted key.",
    "ssl.endpoint.identification.algorithm": "https (default), or empty to accept a certificate of any host.",
    "ssl.enabled.protocols": "TLSv1.2, TLSv1.3 or both (default).",
    "sasl.mechanism": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; GSSAPI (Java's default) with the ticket cache of the "
    "process and the package gssapi; AWS_MSK_IAM with the package botocore; OAUTHBEARER.",
    "sasl.jaas.config": "One login module in Java's syntax: with `username` and `password`; or for OAUTHBEARER with "
    "`clientId`, `clientSecret`, `scope` and `extension_NAME`.",
    "sasl.oauthbearer.token.endpoint.url": "For OAUTHBEARER: `https://...` of an endpoint that gives tokens for client "
    "id and secret, or `file:///...` of a token, on the driver and on every executor. The token of an endpoint is "
    "renewed after 80 % of its life.",
    "sasl.login.callback.handler.class": "For OAUTHBEARER: Java's `OAuthBearerLoginCallbackHandler`, without effect. "
    "Others are refused.",
    "sasl.kerberos.service.name": "The broker's Kerberos service, kafka by default.",
}
"""Read by this project."""

_NO_GROUP = "tasks join no Kafka group"
_PYTHON = "concerns Java's client only"
_SASL = "tokens are renewed after 80 % of their life"

NO_EFFECT: Mapping[str, str] = {
    "auto.commit.interval.ms": "this project does not use Kafka's automatic commits",
    "default.api.timeout.ms": "see `request.timeout.ms`, `kafkaConsumer.pollTimeoutMs`, `fetchOffset.numRetries`",
    "enable.metrics.push": _PYTHON,
    "exclude.internal.topics": "a pattern never matches Kafka's internal topics, as in Spark's source",
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "internal.throw.on.fetch.stable.offset.unsupported": _PYTHON,
    "metadata.recovery.rebootstrap.trigger.ms": _PYTHON,
    "metadata.recovery.strategy": _PYTHON,
    "metric.reporters": _PYTHON,
    "metrics.recording.level": _PYTHON,
    "partition.assignment.strategy": _NO_GROUP,
    "retry.backoff.max.ms": _PYTHON,
    "sasl.kerberos.kinit.cmd": "the ticket cache of the process is used",
    "sasl.kerberos.min.time.before.relogin": "the ticket cache of the process is used",
    "sasl.kerberos.ticket.renew.jitter": "the ticket cache of the process is used",
    "sasl.kerberos.ticket.renew.window.factor": "the ticket cache of the process is used",
    "sasl.login.connect.timeout.ms": _SASL,
    "sasl.login.read.timeout.ms": _SASL,
    "sasl.login.refresh.buffer.seconds": _SASL,
    "sasl.login.refresh.min.period.seconds": _SASL,
    "sasl.login.refresh.window.factor": _SASL,
    "sasl.login.refresh.window.jitter": _SASL,
    "sasl.login.retry.backoff.max.ms": _SASL,
    "sasl.login.retry.backoff.ms": _SASL,
    "share.acknowledgement.mode": _NO_GROUP,
    "share.acquire.mode": _NO_GROUP,
    "socket.connection.setup.timeout.max.ms": "kafka-python has a fixed one",
    "socket.connection.setup.timeout.ms": "kafka-python has a fixed one",
    "ssl.keymanager.algorithm": _PYTHON,
    "ssl.protocol": "TLS uses the highest version that both sides enable",
    "ssl.secure.random.implementation": _PYTHON,
    "ssl.trustmanager.algorithm": _PYTHON,
}
"""Accepted, because no promise depends on them; the value is the reason why they have no effect."""

_LOGIN = (
    "remove it: this project logs in with PLAIN, SCRAM, OAUTHBEARER, the Kerberos ticket cache or AWS_MSK_IAM, without "
    "Java"
)
_TLS = "remove it: TLS here is Python's, which cannot use Java classes"

REFUSED: dict[str, str] = {
    "auto.offset.reset": "set the start with startingOffsets",
    "config.providers": "resolve secrets in the job and pass their values: this project loads no Java class",
    "enable.auto.commit": "remove it: this project commits when the sink has finished a micro-batch",
    "interceptor.classes": "remove it: interceptors can change records, and this project loads no Java class",
    "key.deserializer": "remove it: keys arrive as bytes; convert them with DataFrame operations",
    "sasl.client.callback.handler.class": _LOGIN,
    "sasl.login.class": _LOGIN,
    "security.providers": _TLS,
    "ssl.cipher.suites": "remove it: Java's names of cipher suites mean nothing to Python; the system's policy decides",
    "ssl.engine.factory.class": _TLS,
    "ssl.provider": _TLS,
    "value.deserializer": "remove it: values arrive as bytes; convert them with DataFrame operations",
}
"""Refused; the value is the remedy. Spark refuses five of them too: start, commits, interceptors, (de)serializers."""

REFUSED_FAMILIES: Mapping[str, str] = {
    "config.providers.": REFUSED["config.providers"],
    "sasl.oauthbearer.": _LOGIN,
}
"""The same for all names with this prefix."""

KAFKA_NAMES = frozenset((*PASSED, *UNDERSTOOD, *NO_EFFECT, *REFUSED))
"""Every name of Java's consumer configuration."""


def remedy(name: str) -> str | None:
    """The remedy for a refused option (its name without `kafka.`); None for an accepted one."""
    if name in UNDERSTOOD:
        return None
    family = next((remedy for start, remedy in REFUSED_FAMILIES.items() if name.startswith(start)), None)
    return REFUSED.get(name, family)
