"""Refusals of the store's scripts. They are no mistakes of users.

`coordinator/redis/client.py` raises them. In a member, `turns` makes each a part of the state;
`life` and `recovery` act on it.
"""


class Verdict(Exception):  # noqa: N818 - an answer that the coordinator acts on, not an error
    """A script refused, and wrote nothing."""

    def __str__(self) -> str:
        """The evidence, or the meaning of this verdict."""
        return super().__str__() or type(self).__doc__ or type(self).__name__


class Lost(Verdict):
    """Redis has lost state of the group, or holds an older one; `str()` is the evidence."""


class Absent(Lost):
    """Redis holds nothing of this group: a new group, or everything was lost."""


class Replaced(Verdict):
    """Another group has this name by now; `str()` is its founding."""


class Superseded(Verdict):
    """Another reset of the group has been made meanwhile, or its keys may have changed since a call listed them."""


class Recovering(Verdict):
    """After a loss Redis accepts only assertions, until one session is over."""


class Rejoin(Verdict):
    """The member has not joined since the last loss of state."""


class Fenced(Verdict):
    """Another life of this member has joined since."""


class Missed(Verdict):
    """This member reads its group alone, and another application has read in between."""


class Busy(Verdict):
    """Another member's lease has not ended."""

    def __init__(self, member: str, lease_end_ms: int, now_ms: int) -> None:
        super().__init__(member, lease_end_ms, now_ms)
        self.member = member
        self.lease_end_ms = lease_end_ms
        self.now_ms = now_ms


class Held(Busy):
    """A working member reads these key ranges, or the group's members are of the other kind: pinned or assigned."""


class OtherPolicy(Busy):
    """A live member has another filter, ordering or way to share: `theirs`."""

    def __init__(self, member: str, lease_end_ms: int, now_ms: int, theirs: str) -> None:
        super().__init__(member, lease_end_ms, now_ms)
        self.theirs = theirs


class OtherFilter(OtherPolicy):
    """A live member has another record filter."""


class OtherOrdering(OtherPolicy):
    """A live member has another ordering."""


class Alone(OtherPolicy):
    """A live member reads the group alone, or this one would: `theirs` is empty if that member shares."""
