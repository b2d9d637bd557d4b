"""Faults in policies: partition order, rejected ranges, and levels that survive a loss of state."""

from mutants.fault import Edit, Fault

_CLI = "coordinator/tools/cli/operator_commands.py"
_OBEYING, _SHARED = "coordinator/member/obeying.py", "coordinator/redis/lua/shared/policies.lua"

FAULTS = (
    Fault(
        "a partition in order is read by several tasks",
        (Edit("coordinator/plan/packing.py", " or ordered:", ":"),),
        ("tests/coordinator/plan/test_packing.py",),
    ),
    Fault(
        "a partition in order has several lanes",
        (Edit("coordinator/plan/planning.py", "_whole if tp.topic in cutting.in_order", "_whole if False"),),
        ("tests/coordinator/plan/test_planning.py",),
    ),
    Fault(
        "the owner of a part of a partition in order reads it",
        (Edit(_OBEYING, "if _whole(parts) else 0", "if parts else 0"),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
    Fault(
        "ranges of a partition in order end where they like",
        (Edit(_OBEYING, "min(end, p.reach(ends[tp]))", "p.reach(ends[tp])"),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
    Fault(
        "a range that waits for its partition in order holds up the lead of others",
        (Edit("coordinator/member/reading.py", "    (None, one_end),  # a range", "    # a range"),),
        ("tests/coordinator/member/test_event_time.py",),
    ),
    Fault(
        "a strike in a partition in order leaves turns for other lanes",
        (Edit("coordinator/member/poison.py", "hashes=WHOLE) if s.tp.topic in topics", "hashes=WHOLE) if False"),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
    Fault(
        "a member accepts a range that policies forbid",
        (Edit(_OBEYING, "if not (sharing and look.policy.may_share(tp.topic))}", "if not sharing}"),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
    Fault(
        "the Commit API ignores the policies of topics",
        (Edit(_SHARED, "then return '89' end", "then return nil end"),),
        ("tests/coordinator/commits/test_commit_api_refusals.py",),
    ),
    Fault(
        "a loss of state ends the policies of a group",
        (
            Edit(
                "coordinator/redis/lua/shared/policies.lua",
                "if value == 'false' and known ~= 'false' then",
                "if false then",
            ),
        ),
        ("tests/coordinator/redis/test_recovery.py",),
    ),
    Fault(
        "policies that nothing proves count as allowed",
        (Edit(_SHARED, "if not proven and", "if false and"),),
        ("tests/coordinator/redis/test_recovery.py",),
    ),
    Fault(
        "a changed policy waits for the next update of the mirror",
        (Edit("coordinator/member/owning.py", "    state = mirror_policy(state, seen, look.policy)\n", ""),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
    Fault(
        "a late copy replaces newer policies of the cluster",
        (Edit("coordinator/redis/lua/copy_policies.lua", "if late or (not id", "if (not id"),),
        ("tests/coordinator/assignment/test_policies.py",),
    ),
    Fault(
        "a policy of a group leaves out its other replica sets",
        (Edit(_CLI, "for name in siblings(group, groups):", "for name in ():"),),
        ("tests/coordinator/tools/cli/test_operator_commands.py",),
    ),
    Fault(
        "a dry run of policy sets it",
        (Edit(_CLI, "        if execute and wanted:\n", "        if wanted:\n"),),
        ("tests/coordinator/tools/cli/test_operator_commands.py",),
    ),
    Fault(
        "a dry run of policy sets it for all groups",
        (Edit(_CLI, "    if changes and execute:\n", "    if changes:\n"),),
        ("tests/coordinator/tools/cli/test_operator_commands.py",),
    ),
    Fault(
        "one replica set gets a policy of its own",
        (Edit(_CLI, "if wanted and (first := first_of(group, groups)):", "if first := None:"),),
        ("tests/coordinator/tools/cli/test_operator_commands.py",),
    ),
    Fault(
        "a misspelt group has policies without a warning",
        (Edit(_CLI, "group, store.topics())", "group, store.topics() or ())"),),
        ("tests/coordinator/tools/cli/test_operator_commands.py",),
    ),
    Fault(
        "describe shows policies of the cluster that restrict nothing",
        (Edit("coordinator/tools/operations/views.py", " if not is_plain_copy(name, value)}", "}"),),
        ("tests/coordinator/tools/operations/test_views.py",),
    ),
    Fault(
        "a young replica set lacks the policies of the group",
        (Edit("coordinator/redis/replica_sets.py", "if name != names[0]:", "if False:"),),
        ("tests/coordinator/redis/test_replica_sets.py",),
    ),
    Fault(
        "a running query without order ignores policies",
        (
            Edit(
                "coordinator/member/cooperative.py",
                "    obeying.refuse_demands(looked.policy, state.log.topics, call)\n",
                "",
            ),
        ),
        ("tests/coordinator/member/test_cooperative.py",),
    ),
    Fault(
        "a user without rights escapes the policies of the cluster",
        (
            Edit(
                "coordinator/member/apply.py", "return UNREADABLE, UNKNOWN_POLICY if", "return UNREADABLE, NO_POLICY if"
            ),
        ),
        ("tests/coordinator/member/test_policy_rights.py",),
    ),
    Fault(
        "a user without rights takes away the policies that Redis has",
        (Edit(_OBEYING, "    copies = strict or not missing\n", "    copies = True\n"),),
        ("tests/coordinator/member/test_policy_rights.py", "tests/coordinator/member/test_obeying.py"),
    ),
    Fault(
        "ordering=partition cuts partitions into lanes",
        (Edit(_OBEYING, 'ordered=call.setup.settings.ordering == "partition"', "ordered=False"),),
        ("tests/coordinator/member/test_policy_switches.py",),
    ),
    Fault(
        "the missing right is written at each read",
        (Edit(_OBEYING, "if missing and found != before.found:", "if missing:"),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
    Fault(
        "policies of the cluster are not copied after a loss of state",
        (Edit(_OBEYING, " or before.copied_at != state.life.nonce)", ")"),),
        ("tests/coordinator/member/test_obeying.py",),
    ),
)
