"""Errors of Redis: the server refused or did not answer, or it lacks the group's state."""

from coordinator.errors.base import CoopKafkaError


class StoreError(CoopKafkaError):
    """Redis refused a call for a reason that coop-kafka does not know."""

    name = "REDIS_ERROR"
    usual_remedy = "report the message, with the versions of coop-kafka and of the server"


class RedisUnavailableError(StoreError):
    """Redis did not answer for longer than redisMaxOutage, or never answered at the start."""

    name = "REDIS_UNAVAILABLE"
    retriable = True
    usual_remedy = "start Redis or correct redisUrl, then start the query again; nothing is lost"


class RedisNotReadyError(RedisUnavailableError):
    """Redis answered, but for longer than redisMaxOutage refused calls that it takes at other times.

    Its memory is full, it cannot save, it lacks replicas, it loads, or it is not a primary.
    """

    name = "REDIS_NOT_READY"
    usual_remedy = "do what the message says about the server, then start the query again; nothing is lost"


class RedisAccessError(StoreError):
    """Redis refused the user, the password, a command or a key."""

    name = "REDIS_ACCESS_DENIED"
    usual_remedy = "put user and password into redisUrl, and allow the commands and keys of conf/redis.acl"


class RedisTlsError(StoreError):
    """TLS with Redis failed: an untrusted or expired certificate, one for another host, or a server without TLS."""

    name = "REDIS_TLS_FAILED"
    usual_remedy = "in redisUrl, name a host of the certificate, and by ssl_ca_certs the authority that signed it"


class RedisConfigurationError(StoreError):
    """The settings of the Redis server, or its kind, do not fit: for example, it can evict keys."""

    name = "REDIS_CONFIGURATION"
    usual_remedy = "change the setting or the part of redisUrl that the message names"


class StateFormatError(StoreError):
    """A key of the group in Redis, a copy or the mirror has a value that cannot be read. Nothing was overwritten."""

    name = "STATE_FORMAT"
    usual_remedy = "look at the keys coop:v1:{group}:*; restore or delete the group's state"


class StateLostError(StoreError):
    """Redis lost the group and nothing proves a position, another query created it anew, or it is another cluster's."""

    name = "STATE_LOST"
    usual_remedy = "restore a copy, use coop-kafka reset-offsets, or start once with onStateLoss=earliest"
