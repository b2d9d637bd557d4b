---------------------------------- MODULE LeaseTrace ----------------------------------
(*
Whether members really did what Lease.tla allows: recorded schedules of the simulation, step by step.

Each step names an action, with its process and what Redis has afterwards. Recorded.tla, which scripts/specs writes, has
the steps as Traces, and the constants: members, lanes, processes. TLC replays all of them. If one step is none of the
model, or if the model would leave another state in Redis, there is no next state, and TLC reports a deadlock.

    model                 Plan = look, acquire and plan at one moment
    recorded schedules    look . . . acquire . . . plan: others act in between, so `looked` and `known` may be out of date
*)
EXTENDS Lease, Sequences, Recorded

VARIABLES
    trace,   \* its number in Traces
    cursor,  \* the number of its next step
    looked,  \* of each process: the lanes that its last look showed
    known    \* of each process: its lanes, with lane epoch and position as the last answer showed them

replay == <<vars, trace, cursor, looked, known>>
now == Traces[trace][cursor]
p == now.p

Start ==
    /\ Init
    /\ trace \in 1..Len(Traces) /\ cursor = 1
    /\ looked = [q \in Process |-> {}] /\ known = [q \in Process |-> NoSlices]

\* What Redis has after the step. A step names only what has changed.
Recorded(what, before) == IF what \in DOMAIN now THEN now[what] ELSE before
AsRecorded ==
    /\ owner' = Recorded("owner", owner)
    /\ position' = Recorded("position", position)
    /\ assigned' = Recorded("assigned", assigned)

\* An answer shows the lanes that a member owns, with their lane epochs and positions.
Shown == [known EXCEPT ![p] = [l \in Lane |->
    IF owner'[l].member = p.member
    THEN [epoch |-> owner'[l].epoch, from |-> position'[l], until |-> position'[l], read |-> FALSE]
    ELSE Nothing]]

\* join.lua, of a process that has joined: Redis refused a late call of it (rule: numbered-calls). It may come late, after
\* its process has left: then the member gets lanes until the end of this lease.
JoinAgain ==
    /\ state[p] # "absent" /\ Latest(p)
    /\ occasion' = {}
    /\ lease' = [lease EXCEPT ![p.member] = "runs"]
    /\ UNCHANGED <<life, assigned, owner, epochs, position, state, slice, sink>>

Look ==
    /\ now.lanes = {l \in Lane : assigned[l] = p.member}
    /\ Heartbeat(p)
    /\ looked' = [looked EXCEPT ![p] = now.lanes] /\ UNCHANGED known

Acquire ==
    /\ now.lanes \subseteq looked[p]
    /\ Takes(p, now.lanes)
    /\ known' = Shown
    /\ UNCHANGED <<life, assigned, occasion, position, state, slice, sink, looked>>

\* A lane epoch of ranges without a key of the simulation.
Elsewhere == epochs' = epochs + 1 /\ UNCHANGED <<lease, life, assigned, occasion, owner, position, state, slice, sink>>

\* A batch begins where the last answer showed its lanes (rule: fresh-positions). One without slices is none of the model.
BeginsWhereKnown ==
    IF now.slices = NoSlices THEN state[p] = "idle" /\ UNCHANGED vars ELSE
    /\ \A l \in Lane : LET s == now.slices[l] IN s # Nothing =>
        known[p][l] = [s EXCEPT !.until = s.from] /\ s.from < s.until
    /\ Plans(p, now.slices)
    /\ UNCHANGED <<redis, sink>>

AuthorizeThese ==
    IF state[p] = "idle" THEN Heartbeat(p) ELSE
    /\ Authorize(p)
    /\ \A l \in Lane : slice'[p][l].read <=> slice[p][l] # Nothing /\ l \in now.lanes

\* Whatever a commit names: Redis refuses the lanes that its member does not own at their lane epochs, and no others.
RefusesTheseOnly ==
    now.refused = {l \in Lane : now.named[l] # 0 /\ owner[l] # [member |-> p.member, epoch |-> now.named[l]]}

\* A commit that comes again finds nothing to commit.
CommitThese ==
    /\ IF state[p] = "done" THEN Commit(p) ELSE state[p] = "idle" /\ Heartbeat(p)
    /\ RefusesTheseOnly
    /\ known' = Shown /\ UNCHANGED looked

\* A commit of a batch before the last one moves nothing.
LateCommit == Heartbeat(p) /\ RefusesTheseOnly

CompleteIt == IF state[p] = "idle" THEN UNCHANGED vars ELSE Complete(p)

\* A leave that comes again finds the member gone, or its lanes kept. A process that is stopped in a call may know no
\* better than to keep lanes that it does not read.
LeaveOnce == IF Gone(p) THEN UNCHANGED vars ELSE Leave(p, {l \in Lane : owner'[l].member = p.member})

Fenced == (~Latest(p) \/ Gone(p)) /\ UNCHANGED vars

\* Topics or policies changed: a new assignment is due.
Due == occasion' = {} /\ UNCHANGED <<lease, life, assigned, owner, epochs, position, state, slice, sink>>

\* claim.lua, which Loss.tla has: a process asserts what Redis refused. All of that must be in the sink.
Claim ==
    /\ \A l \in Lane : position'[l] >= position[l] /\ 0..(position'[l] - 1) \subseteq sink[l]
    /\ UNCHANGED <<lease, life, assigned, occasion, owner, epochs, state, slice, sink>>

Step ==
    /\ cursor <= Len(Traces[trace])
    /\ cursor' = cursor + 1 /\ UNCHANGED trace
    /\ AsRecorded
    /\ CASE now.ev = "look" -> Look
         [] now.ev = "acquire" -> Acquire
         [] now.ev = "commit" -> CommitThese
         [] OTHER ->
            /\ UNCHANGED <<looked, known>>
            /\ CASE now.ev = "join" -> Join(p)
                 [] now.ev = "join again" -> JoinAgain
                 [] now.ev = "heartbeat" -> IF Gone(p) /\ Owned(p) = {} THEN UNCHANGED vars ELSE Heartbeat(p)
                 [] now.ev = "lease ends" -> LeaseEnds(now.m)
                 [] now.ev = "assign" -> Assign(p)
                 [] now.ev = "release" -> Release(p, {l \in now.lanes : Releasable(p, l)})
                 [] now.ev = "plan" -> BeginsWhereKnown
                 [] now.ev = "authorize" -> AuthorizeThese
                 [] now.ev = "complete" -> CompleteIt
                 [] now.ev = "late commit" -> LateCommit
                 [] now.ev = "leave" -> LeaveOnce
                 [] now.ev = "fenced" -> Fenced
                 [] now.ev = "due" -> Due
                 [] now.ev = "claim" -> Claim
                 [] now.ev = "elsewhere" -> Elsewhere

Replay == Step \/ (cursor > Len(Traces[trace]) /\ UNCHANGED replay)
======================================================================================
