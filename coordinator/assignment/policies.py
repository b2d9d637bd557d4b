"""The policies of a group, its topics and its members on shared partitions. Pure.

    accept.individual.commit             of the group: may it share partitions at all
    accept.range.fetch:<topic>           of a topic: may its partitions be shared
    allow.individual.commit              of a query: may this member share a partition

A member gets a range of a partition only if all three are true; each is true by default (rule: sharing-policies).
Policies apply to assignments: one application still cuts whole partitions into lanes.
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

GROUP_POLICY = "accept.individual.commit"
TOPIC_POLICY = "accept.range.fetch"
MEMBER_POLICY = "allow.individual.commit"
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Policy:
    """The policies of a group and of its topics."""

    accept_individual_commit: bool = True
    refused_topics: frozenset[str] = frozenset()  # whose accept.range.fetch is false

    def may_share(self, topic: str) -> bool:
        """Whether partitions of this topic may be shared between members."""
        return self.accept_individual_commit and topic not in self.refused_topics

    def joined(self, topics: Collection[str]) -> "Policy":
        """The same, if partitions of these topics move together: either all of the topics may be shared, or none."""
        refused = self.refused_topics.intersection(topics)
        return replace(self, refused_topics=self.refused_topics.union(topics)) if refused else self

    @property
    def fields(self) -> dict[str, str]:
        """The group's policy, and the topics' policies that differ from the default, by name; for people."""
        group = {GROUP_POLICY: _text(self.accept_individual_commit)}
        return group | {f"{TOPIC_POLICY}:{topic}": "false" for topic in sorted(self.refused_topics)}


def policy_of(fields: Mapping[str, str]) -> Policy:
    """The policy that Redis holds in these fields; raises `StateFormatError`."""
    for name, text in fields.items():
        if text not in ("true", "false") or not _known(name):
            raise StateFormatError(
                f"policy {name!r} is recorded as {text!r}: the name is unknown, or the value is not true or false",
                "set it again: coop-kafka policy GROUP",
            )
    refused = (name.partition(":")[2] for name, text in fields.items() if text == "false" and name != GROUP_POLICY)
    return Policy(fields.get(GROUP_POLICY, "true") == "true", frozenset(refused))


def checked(changes: Mapping[str, str]) -> dict[str, str]:
    """A user's changes in the form of Redis: true, false, or "" for the default.

    Raises `UnknownOptionError` for a name and `InvalidOptionError` for a value.
    """
    return {name: _checked(name, text.strip().lower()) for name, text in changes.items()}


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
    remedy = f"{way}, so that this query reads whole partitions; or change"
    if not policy.accept_individual_commit:
        raise IndividualCommitNotAllowedError(
            f"{demand}, but the policy of group {group!r} is {GROUP_POLICY}=false",
            f"{remedy} the policy: {setting(group, GROUP_POLICY)}",
        )
    if refused := sorted(policy.refused_topics.intersection(topics)):
        raise TopicRangeFetchNotAllowedError(
            f"{demand}, but in group {group!r} the policy of topic {refused[0]!r} is {TOPIC_POLICY}=false",
            f"{remedy} the policy: {setting(group, f'{TOPIC_POLICY}:{refused[0]}')}",
        )


def setting(group: str, policy: str) -> str:
    """The command that sets a policy to true, to be copied."""
    return f"coop-kafka policy {shlex.quote(group)} --set {shlex.quote(f'{policy}=true')}"


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
