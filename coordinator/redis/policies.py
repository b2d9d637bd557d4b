"""The policies of a group in Redis: read and set while the group runs (rule: sharing-policies)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.assignment.policies import CLUSTER, Policy, checked, policy_of
from coordinator.redis.group_state import check_schema
from coordinator.redis.script_texts import flat, pairs
from coordinator.redis.verb import nothing, sound, verb

if TYPE_CHECKING:
    from coordinator.redis.calls import ScriptCalls

KEPT_MS = 7 * 24 * 3_600_000
"""How long a policy without a group is kept: seven days, as in Kafka (KIP-211)."""
_COPY = verb("copy_policies", "meta policy events", "version policies", nothing)
_POLICY = verb("policy", "meta policy events", "kept_ms policies", lambda reply: policy_of(pairs(reply["policies"])))


@dataclass(frozen=True, slots=True)
class RedisPolicies:
    """Reads and writes of a group's policies, for members and others."""

    calls: "ScriptCalls"

    def policy(self) -> Policy:
        """The policies in force; the defaults if none is set. Raises `StateFormatError`."""
        meta, policy = self.calls.hashes((self.calls.keys.meta, self.calls.keys.policy))
        if meta:
            check_schema(meta)
        return policy_of(policy)

    @sound
    def copy(self, version: str, policy: Policy) -> None:
        """Copy the policies of the Kafka cluster to the group (rule: cluster-policies).

        `version`: empty without a topic of policies, `-` if it may not be read.
        """
        self.calls.run(_COPY, version=version, policies=flat(policy.fields if version else {}))

    def adopt(self, other: "RedisPolicies") -> None:
        """Set the policies that the other group sets and this one does not, without copies of the cluster's."""
        mine, theirs = (of.calls.hash(of.calls.keys.policy) for of in (self, other))
        policy_of(theirs)
        if missing := {n: v for n, v in theirs.items() if n not in mine and not n.startswith(CLUSTER)}:
            self._set(missing)

    def topics(self) -> frozenset[str] | None:
        """The topics of the group; None if there is no group yet."""
        meta, topics = self.calls.hashes((self.calls.keys.meta, self.calls.keys.topics))
        return frozenset(topics) if meta else None

    def set_policy(self, changes: Mapping[str, str]) -> Policy:
        """Set policies by name to true, false or "" (the default): all of them, or none if one is wrong.

        Names are `accept.individual.commit` and `accept.range.fetch:<topic>`. Other policies stay. The answer is the
        policies after it. Each change is an event. Raises `UnknownOptionError`, `InvalidOptionError`.
        """
        return self._set(checked(changes))

    def _set(self, changes: Mapping[str, str]) -> Policy:
        return self.calls.run(_POLICY, kept_ms=str(KEPT_MS), policies=flat(changes))
