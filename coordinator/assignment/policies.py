"""The policies of the Kafka cluster, of a group, its topics and its members on shared partitions. Pure.

    accept.individual.commit             of the cluster or of a group: may it share partitions at all
    accept.range.fetch:<topic>           of a topic, in all groups or in one: may its partitions be shared
    sharing                              of a query: may this member share a partition

A member gets a range of a partition only if all of them are true; each is true by default (rule: sharing-policies).
A group has copies of the cluster's policies, under names that begin with `cluster:`.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from coordinator.errors import (
    IndividualCommitNotAllowedError,
    InvalidOptionError,
    StateFormatError,
    TopicRangeFetchNotAllowedError,
    UnknownOptionError,
)
from coordinator.values.subscription import POLICIES

GROUP_POLICY = "accept.individual.commit"
TOPIC_POLICY = "accept.range.fetch"
MEMBER_POLICY = "allow.individual.commit"
CLUSTER, VERSION = "cluster:", "version"
"""How a group's copies of the cluster's policies begin, and the name of their version."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


UNKNOWN = "unknown"
"""The value of accept.individual.commit without evidence of a level's policies: the strict reading of all of them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policies of a group and of its topics."""

    accept_individual_commit: bool = True
    refused_topics: frozenset[str] = frozenset()  # whose accept.range.fetch is false
    unknown: bool = False  # after a loss of state: all that could be forbidden counts as forbidden
    cluster: "Policy | None" = None  # of the whole cluster, as the group knows them; the stricter of both holds
    version: str = ""  # of the cluster's policies
    ordered: bool = False  # whether the group has ordering=partition, which is stricter than any policy

    def may_share(self, topic: str) -> bool:
        """Whether partitions of this topic may be shared between members."""
        own = self.accept_individual_commit and not self.in_order(topic)
        return own and (self.cluster is None or self.cluster.may_share(topic))

    def in_order(self, topic: str) -> bool:
        """Whether each application reads partitions of this topic in the log's order (rule: partition-order)."""
        own = self.unknown or self.ordered or topic in self.refused_topics
        return own or (self.cluster is not None and self.cluster.in_order(topic))

    @property
    def of_group(self) -> "Policy":
        """The group's own policies."""
        return replace(self, cluster=None, version="")

    def with_cluster(self, version: str, cluster: "Policy") -> "Policy":
        """These policies and those of the cluster as just read; the copy of before where they may not be read."""
        known = self.cluster if self.version and version in ("", UNREADABLE) else cluster
        return replace(self, cluster=known)

    @property
    def of_topics(self) -> "Policy":
        """The policies of topics alone."""
        cluster = self.cluster and self.cluster.of_topics
        return replace(self, accept_individual_commit=True, cluster=cluster)

    def stricter(self, other: "Policy") -> "Policy":
        """What both allow."""
        both = self.accept_individual_commit and other.accept_individual_commit
        return Policy(both, self.refused_topics | other.refused_topics, self.unknown or other.unknown)

    def changed(self, changes: Mapping[str, str]) -> "Policy":
        """These policies after a user's changes. Raises `UnknownOptionError`, `InvalidOptionError`."""
        return policy_of({name: text for name, text in (self.fields | checked(changes)).items() if text})

    def mirrored(self, topic: str) -> tuple[bool, bool] | None:
        """The policies of the group and of this topic, for the mirror; None if they are unknown."""
        return None if self.unknown else (self.accept_individual_commit, topic not in self.refused_topics)

    def joined(self, topics: Collection[str]) -> "Policy":
        """The same, if partitions of these topics move together: either all of the topics may be shared, or none."""
        refused = any(map(self.in_order, topics))
        return replace(self, refused_topics=self.refused_topics.union(topics)) if refused else self

    @property
    def fields(self) -> dict[str, str]:
        """The group's policy, and the topics' policies that differ from the default, by name; for people."""
        group = {GROUP_POLICY: UNKNOWN if self.unknown else _text(self.accept_individual_commit)}
        own = group | {f"{TOPIC_POLICY}:{topic}": "false" for topic in sorted(self.refused_topics)}
        cluster = self.cluster.fields.items() if self.cluster else ()
        return own | {f"{CLUSTER}{name}": value for name, value in cluster if value != "true"}


UNREADABLE_TOPIC = f"this Kafka user may not read the topic {POLICIES}, which need not exist"
GRANT = f"grant the user READ on the topic {POLICIES}"
"""Why the cluster's policies are unknown, and the remedy."""

UNREADABLE, UNKNOWN_POLICY = "-", Policy(accept_individual_commit=False, unknown=True)
"""The version and the policies of a cluster whose topic of policies may not be read."""

NO_POLICY = Policy()
"""Everything is allowed: the default."""


def policy_of(fields: Mapping[str, str]) -> Policy:
    """The policy that Redis holds in these fields; raises `StateFormatError`."""
    own = {name: text for name, text in fields.items() if not name.startswith(CLUSTER)}
    copies = {name.removeprefix(CLUSTER): text for name, text in fields.items() if name.startswith(CLUSTER)}
    version = copies.pop(VERSION, "")
    return replace(_parsed(own), cluster=_parsed(copies) if version or copies else None, version=version)


def cluster_policy(fields: Mapping[str, str]) -> Policy:
    """The policies in Kafka's topic of policies, without names that this version does not know."""
    return _parsed({name: text for name, text in fields.items() if _known(name)})


def _parsed(fields: Mapping[str, str]) -> Policy:
    for name, text in fields.items():
        if not _known(name) or not (text in ("true", "false") or (name, text) == (GROUP_POLICY, UNKNOWN)):
            raise StateFormatError(
                f"policy {name!r} is recorded as {text!r}: the name is unknown, or the value is not true or false",
                "set it again: coop-kafka policy GROUP",
            )
    refused = (name.partition(":")[2] for name, text in fields.items() if text == "false" and name != GROUP_POLICY)
    of_group = fields.get(GROUP_POLICY, "true")
    return Policy(of_group == "true", frozenset(refused), unknown=of_group == UNKNOWN)


def checked(changes: Mapping[str, str]) -> dict[str, str]:
    """A user's changes in the form of Redis: true, false, or "" for the default.

    Raises `UnknownOptionError` for a name and `InvalidOptionError` for a value.
    """
    return {name: _checked(name, text.strip().lower()) for name, text in changes.items()}


def of_all_groups(changes: Mapping[str, str], topic: str | None) -> dict[str, str]:
    """Changes of the cluster's policy, or of the policy of a topic in all groups, in the form of Kafka's topic.

    Raises `UnknownOptionError` for a name that does not belong there, and `InvalidOptionError` for a value.
    """
    only = GROUP_POLICY if topic is None else TOPIC_POLICY
    level, suffix = ("--cluster", "") if topic is None else (f"--topic {topic}", f":{topic}")
    for name in changes:
        if name != only:
            raise UnknownOptionError(f"policy {name!r} does not belong to {level}", f"set {only} with {level}")
    return checked({f"{name}{suffix}": text for name, text in changes.items()})


def checked_topic(name: str) -> str:
    """The name of a topic; `InvalidOptionError` if no topic can have it."""
    if not _TOPIC_NAME.fullmatch(name):
        raise InvalidOptionError(
            f"--topic {name[:80]!r} is not the name of a topic", "name one topic of the Kafka cluster"
        )
    return name


def is_plain_copy(name: str, value: str) -> bool:
    """Whether a field of a group is a copy of the cluster's policies that restricts nothing, or their version."""
    return name == CLUSTER + VERSION or (name.startswith(CLUSTER) and value == "true")


def not_there(changes: Iterable[str], group: str, topics: Collection[str] | None) -> tuple[str, ...]:
    """A line for each of these policies without effect; `topics` are the group's, None if there is no group."""
    if topics is None:
        return (f"group {group!r} does not exist. Redis keeps its policies for seven days. Check the name",)
    named = (name.partition(":")[2] for name in changes if name != GROUP_POLICY)
    return tuple(
        f"group {group!r} does not read topic {topic!r}: its policy waits until the group reads it. Check the name"
        for topic in named
        if topic not in topics
    )


def refuse_demand(policy: Policy, group: str, topics: Iterable[str], demand: str, way: str) -> None:
    """Raise code 88 or 89 if a query demands parts of partitions and policies forbid it.

    `demand` is what the query demands, and `way` how it reads whole partitions instead.
    """
    named = sorted(topics)
    _refuse(policy.of_group, f"of group {group!r}", f"in group {group!r}", named, demand, way, group)
    if policy.cluster:
        _refuse(policy.cluster, "of the Kafka cluster", "in all groups", named, demand, way, None)


def _refuse(
    policy: Policy, whose: str, where: str, topics: Iterable[str], demand: str, way: str, group: str | None
) -> None:
    remedy = f"{way}, so that this query reads whole partitions; or change the policy:"
    if policy.unknown and group is None:
        raise IndividualCommitNotAllowedError(
            f"{demand}, but the policies {whose} are unknown, which counts as forbidden: {UNREADABLE_TOPIC}",
            f"{GRANT}; or {way}, so that this query reads whole partitions",
        )
    if not policy.accept_individual_commit:
        raise IndividualCommitNotAllowedError(
            f"{demand}, but the policy {whose} is {GROUP_POLICY}={policy.fields[GROUP_POLICY]}",
            f"{remedy} {setting(group, GROUP_POLICY)}",
        )
    if refused := next(filter(policy.in_order, topics), None):
        raise TopicRangeFetchNotAllowedError(
            f"{demand}, but {where} the policy of topic {refused!r} is {TOPIC_POLICY}=false",
            f"{remedy} {setting(group, f'{TOPIC_POLICY}:{refused}')}",
        )


def setting(group: str | None, policy: str) -> str:
    """The command that sets a policy to true, to be copied; None: of the cluster or of a topic in all groups."""
    if group is not None:
        return f"coop-kafka policy {shlex.quote(group)} --set {shlex.quote(f'{policy}=true')} --execute"
    name, _, topic = policy.partition(":")
    return f"coop-kafka policy {f'--topic {topic}' if topic else '--cluster'} --set {name}=true --execute"


def _checked(name: str, text: str) -> str:
    if not _known(name):
        near = get_close_matches(name.partition(":")[0], (GROUP_POLICY, TOPIC_POLICY), 1)
        known = f"{GROUP_POLICY} of the group, or {TOPIC_POLICY}:TOPIC of a topic"
        raise UnknownOptionError(
            f"policy {name!r} does not exist",
            f"did you mean {near[0]}{':TOPIC' if near[0] == TOPIC_POLICY else ''}? Set {known}"
            if near
            else f"set {known}",
        )
    if text not in ("true", "false", ""):
        remedy = f"set {name} to true, false, or nothing for the default"
        raise InvalidOptionError(f"policy {name} = {text!r}: neither true nor false", remedy)
    return text


def _known(name: str) -> bool:
    kind, colon, topic = name.partition(":")
    return name == GROUP_POLICY or (kind == TOPIC_POLICY and bool(colon) and bool(_TOPIC_NAME.fullmatch(topic)))


def _text(value: bool) -> str:
    return "true" if value else "false"
