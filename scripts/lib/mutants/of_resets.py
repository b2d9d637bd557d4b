"""Faults in the effects of an operator's reset."""

from mutants.fault import Edit, Fault

_SCRIPTS = (
    "tests/coordinator/redis/test_store.py",
    "tests/coordinator/redis/test_recovery.py",
    "tests/coordinator/member/test_ownership_events.py",
)

FAULTS = (
    Fault(
        "an old copy of Redis, put there in a reset, overwrites the mirror of the reset",
        (Edit("coordinator/tools/operations/operations.py", "        if epoch < since:\n            return\n", ""),),
        ("tests/coordinator/tools/operations/test_reset.py",),
    ),
    Fault(
        "a late call of an operator deletes or replaces a part of a group",
        (
            Edit(
                "coordinator/redis/lua/shared/leases.lua",
                "  return { 'SUPERSEDED' }\n",
                "  return nil\n",
            ),
        ),
        ("tests/coordinator/redis/test_late_operators.py",),
    ),
    Fault(
        "a reset founds the group anew (against rule: one-founding)",
        (
            Edit(
                "coordinator/redis/lua/reset.lua",
                "'nonce', A.nonce, 'epochs'",
                "'nonce', A.nonce, 'founding', A.nonce, 'epochs'",
            ),
        ),
        ("tests/coordinator/tools/operations/test_reset.py",),
    ),
    Fault(
        "a refused reset takes the leader epoch out of the mirror",
        (
            Edit(
                "coordinator/tools/operations/operations.py",
                "existing(self._log, state.topics), extents)",
                "existing(self._log, state.topics))",
            ),
        ),
        ("tests/coordinator/tools/operations/test_reset.py",),
    ),
    Fault(
        "an assertion of an older reset epoch is taken",
        (
            Edit(
                "coordinator/redis/lua/claim.lua",
                "if redis.call('HGET', META, 'reset_epoch') ~= A.reset then return reply() end",
                "",
            ),
        ),
        _SCRIPTS,
    ),
    Fault(
        "a fact of a newer reset epoch than Redis has is no loss",
        (
            Edit(
                "coordinator/redis/lua/shared/prelude.lua",
                "  if less(redis.call('HGET', META, 'reset_epoch') or '0', reset) then",
                "  if false then",
            ),
        ),
        _SCRIPTS,
    ),
    Fault(
        "after a loss, proofs of an older reset epoch count",
        (Edit("coordinator/redis/lua/recover.lua", "older and '-' or p.position", "p.position"),),
        _SCRIPTS,
    ),
    Fault(
        "a recovery records new partitions that it does not place",
        (Edit("coordinator/redis/lua/recover.lua", "(counts[p.topic] or p.count)", "p.count"),),
        _SCRIPTS,
    ),
    Fault(
        "a reset keeps individual commits",
        (Edit("coordinator/redis/lua/reset.lua", "    redis.call('DEL', keys.ics, keys.reserved)\n", ""),),
        _SCRIPTS,
    ),
)
