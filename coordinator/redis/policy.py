"""The verbs of policies: read and set while the group runs (rule: sharing-policies). One method a verb."""

from collections.abc import Mapping

from coordinator.assignment.policies import Policy, checked, policy_of
from coordinator.group_state import check_schema
from coordinator.redis.calls import NOBODY, ScriptCalls, pairs

KEPT_MS = 7 * 24 * 3_600_000
"""How long a policy without a group is kept: seven days, as in Kafka (KIP-211)."""


class PolicyVerbs(ScriptCalls):
    """Reads and writes of a group's policies, for members and others."""

    def policy(self) -> Policy:
        """The policies in force; the defaults if none is set. Raises `StateFormatError`."""
        k = self._keys
        with self._client.reading() as redis:
            meta, policy = redis.pipeline(transaction=False).hgetall(k.meta).hgetall(k.policy).execute()
        if meta:
            check_schema(meta)
        return policy_of(policy)

    def topics(self) -> frozenset[str] | None:
        """The topics of the group; None if there is no group yet."""
        k = self._keys
        with self._client.reading() as redis:
            meta, topics = redis.pipeline(transaction=False).hgetall(k.meta).hgetall(k.topics).execute()
        return frozenset(topics) if meta else None

    def set_policy(self, changes: Mapping[str, str]) -> Policy:
        """Set policies by name to true, false or "" (the default): all of them, or none if one is wrong.

        Names are `accept.individual.commit` and `accept.range.fetch:<topic>`. Other policies stay. The answer is the
        policies after it. Each change is an event. Raises `UnknownOptionError`, `InvalidOptionError`.
        """
        k = self._keys
        flat = [text for change in checked(changes).items() for text in change]
        (reply,) = self._run("policy", NOBODY, [k.meta, k.policy, k.events], str(KEPT_MS), *flat)
        return policy_of(pairs(reply))
