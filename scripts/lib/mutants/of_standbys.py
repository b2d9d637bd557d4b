"""Faults in standbys: who takes over, how many, and who is a standby again."""

from mutants.fault import Edit, Fault

_ROLES = "coordinator/redis/lua/shared/standbys.lua"
_JOIN, _LOOK, _LEAVE = (f"coordinator/redis/lua/{verb}.lua" for verb in ("join", "look", "leave"))
_LEASES, _LIFE = "coordinator/redis/lua/shared/leases.lua", "coordinator/member/life.py"
_STORE = ("tests/coordinator/redis/test_standbys.py",)
_STEPS = ("tests/coordinator/member/test_standby.py",)

_DRAIN, _DRAINED = "coordinator/redis/lua/drain.lua", ("tests/coordinator/tools/operations/test_draining.py",)

FAULTS = (
    Fault(
        "a standby counts as a working member",
        (Edit(_LEASES, "== 0 and not waits then members", "== 0 then members"),),
        _STORE,
        schedules=200,
    ),
    Fault(
        "every standby takes over from one lost member",
        (Edit(_ROLES, "if missing > 0 and waits", "if waits"),),
        _STORE,
        schedules=200,
    ),
    Fault(
        "a standby takes over only if nobody else works",
        (Edit(_ROLES, "math.max(1, #redis.call('HKEYS', assignment))", "1"),),
        _STORE,
        schedules=200,
    ),
    Fault(
        "a group of standbys waits for ever",
        (Edit(_ROLES, "math.max(1, #redis.call('HKEYS', assignment))", "#redis.call('HKEYS', assignment)"),),
        _STORE,
        schedules=200,
    ),
    Fault(
        "a dead standby takes over",
        (Edit(_ROLES, " and not takeable(keys.leases, keys.batches, member)\n", "\n"),),
        _STORE,
    ),
    Fault(
        "a hung owner still works beside the one that took over",
        (Edit(_ROLES, "  if taken then change_places(keys) end\n", ""),),
        _STORE,
    ),
    Fault(
        "a restart within the lease hands over",
        (Edit(_JOIN, "if member == call.member then role = 'working' end", ""),),
        _STORE,
    ),
    Fault(
        "a standby acquires ranges of an old assignment",
        (Edit(_LOOK, "if role == 'standby' then mine = '' end", ""),),
        _STORE,
    ),
    Fault(
        "a member that left keeps its role",
        (Edit(_LEAVE, "redis.call('HDEL', K.standbys, call.member)\n", ""),),
        _STORE,
    ),
    Fault(
        "a standby that took over joins again as a standby",
        (Edit(_LIFE, "role = (state.life.role or STANDBY) if", "role = STANDBY if"),),
        _STEPS,
    ),
    Fault(
        "a drained member never works again, because the assignment was made for the same occasion",
        (Edit(_DRAIN, "redis.call('HDEL', META, 'occasion')", ""),),
        _DRAINED,
    ),
    Fault(
        "a drained member takes its own place over",
        (Edit(_DRAIN, "  redis.call('HDEL', K.assignment, member)\n", ""),),
        _DRAINED,
    ),
    Fault(
        "all members are drained, and nobody reads",
        (Edit(_DRAIN, "if others == 0 or #chosen == 0 then", "if #chosen == 0 then"),),
        _DRAINED,
    ),
    Fault(
        "a member that was drained warns as if it had failed",
        (Edit("coordinator/member/assigning.py", "info=drained)", "info=False)"),),
        ("tests/coordinator/member/test_standby.py",),
    ),
    Fault(
        "a dry run of drain drains",
        (Edit("coordinator/tools/cli/drain_command.py", "if members and execute:", "if members:"),),
        ("tests/coordinator/tools/cli/test_drain_command.py",),
    ),
    Fault(
        "a member that was drained stays a standby in its own eyes",
        (Edit("coordinator/member/assigning.py", "not role and not settings.standby", "False"),),
        ("tests/coordinator/member/test_standby.py",),
    ),
)
