------------------------------------ MODULE Lease ------------------------------------
(*
Who owns a lane, and who may move its position.

    Redis     lease, life, assigned, occasion, owner, epochs, position
    process   one life of a member: a reader process beside its driver
    sink      what arrived there, of each lane

    absent --Join--> idle --Plan--> planned --Authorize--> reading --Complete--> done --Commit--> idle
                     Assign, Release                                       Leave, from done: parted, else: left

A process that dies is one that takes no further step. One that takes steps after the next life of its member began is
one that stood still. A lane has one hash range for ever, and a batch reads one offset of each lane. LeaseTrace.tla checks
what members really did against these actions; there, a batch may read several offsets.
*)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Member,    \* the checkpoints: same checkpoint, same member
    Lane,
    End,       \* the log end: offsets 0 to End - 1 have a record
    Restarts,  \* how many lives begin beside the first ones
    Epochs,    \* how many lane epochs there are, so that the model is finite
    Off        \* the rules that are switched off

On(rule) == rule \notin Off

Nobody == "nobody"
Free == [member |-> Nobody, epoch |-> 0]
Process == [member : Member, life : 1..(Restarts + 1)]
Nothing == [epoch |-> 0, from |-> 0, until |-> 0, read |-> FALSE]  \* no slice of this lane
NoSlices == [l \in Lane |-> Nothing]

VARIABLES
    lease,     \* of each member: ended, runs, or leaving, while it runs and the member gets no more lanes
    life,      \* of each member: the life that joined last (its incarnation), 0 for none
    assigned,  \* the assignment in force
    occasion,  \* the working members that it was made for; {} after a join, which makes a new one due
    owner,     \* of each lane: its member and its lane epoch
    epochs,    \* the last lane epoch
    position,  \* of each lane
    state,     \* of each process, see above
    slice,     \* of each process and lane: what its batch reads
    sink       \* of each lane: the offsets that arrived

redis == <<lease, life, assigned, occasion, owner, epochs, position>>
vars == <<redis, state, slice, sink>>

TypeOK ==
    /\ \A m \in Member : lease[m] \in {"ended", "runs", "leaving"} /\ life[m] \in 0..(Restarts + 1)
    /\ occasion \subseteq Member
    /\ \A l \in Lane :
        /\ assigned[l] \in Member \cup {Nobody} /\ owner[l].member \in Member \cup {Nobody}
        /\ owner[l].epoch <= epochs
        /\ position[l] \in 0..End /\ sink[l] \subseteq 0..(End - 1)
    /\ \A p \in Process :
        state[p] \in {"absent", "idle", "planned", "reading", "done", "left", "parted"}

Init ==
    /\ lease = [m \in Member |-> "ended"]
    /\ life = [m \in Member |-> 0]
    /\ assigned = [l \in Lane |-> Nobody]
    /\ occasion = {}
    /\ owner = [l \in Lane |-> Free]
    /\ epochs = 0
    /\ position = [l \in Lane |-> 0]
    /\ state = [p \in Process |-> "absent"]
    /\ slice = [p \in Process |-> NoSlices]
    /\ sink = [l \in Lane |-> {}]

--------------------------------------------------------------------------------------
Owns(m, l) == owner[l].member = m
Works(m) == lease[m] = "runs"
Working == {m \in Member : Works(m)}
Owned(p) == {l \in Lane : Owns(p.member, l)}
Goes(p, to) == state' = [state EXCEPT ![p] = to]
Gone(p) == state[p] \in {"left", "parted"}
Lives(p) == state[p] # "absent" /\ ~Gone(p)

\* The fence of lives, which every verb checks: prelude.lua, `fenced`.
Latest(p) == life[p.member] = p.life \/ ~On("one-life")

\* A renewing verb. The member owns what nobody took meanwhile, also if its lease had ended.
Renew(p) == lease' = [lease EXCEPT ![p.member] = IF Gone(p) THEN "leaving" ELSE "runs"]

\* join.lua, of a process that starts. The next life finds the last batch in Spark's checkpoint: one that Spark has
\* completed is committed, any other one is authorised again. Nothing that its earlier life does from now on passes the
\* fence. So that life is over, but for tasks that still write.
Join(p) ==
    LET before == [p EXCEPT !.life = p.life - 1]
        done == state[before] \in {"done", "parted"}
        batch == IF done THEN slice[before] ELSE [l \in Lane |-> [slice[before][l] EXCEPT !.read = FALSE]]
        over == On("one-life") /\ state[before] # "reading" /\ ~Gone(before)
        next == [state EXCEPT ![p] = IF done THEN "done" ELSE IF batch # NoSlices THEN "planned" ELSE "idle"]
    IN  /\ state[p] = "absent"
        /\ life' = [life EXCEPT ![p.member] = p.life]
        /\ IF p.life = 1
           THEN Goes(p, "idle") /\ UNCHANGED slice
           ELSE /\ state[before] # "absent"
                /\ Cardinality({q \in Process : q.life > 1 /\ state[q] # "absent"}) < Restarts
                /\ state' = IF over THEN [next EXCEPT ![before] = "left"] ELSE next
                /\ slice' = IF over THEN [slice EXCEPT ![p] = batch, ![before] = NoSlices] ELSE [slice EXCEPT ![p] = batch]
        /\ occasion' = {}
        /\ Renew(p)
        /\ UNCHANGED <<assigned, owner, epochs, position, sink>>

\* heartbeat.lua. It may come late, after its process has left: then the lanes that it kept wait for longer.
Heartbeat(p) ==
    /\ Lives(p) \/ (Gone(p) /\ Owned(p) # {})
    /\ Latest(p)
    /\ Renew(p)
    /\ UNCHANGED <<life, assigned, occasion, owner, epochs, position, state, slice, sink>>

\* No verb renewed the lease in time. Nothing else changes: the end of a lease does not end ownership.
LeaseEnds(m) ==
    /\ lease[m] # "ended"
    /\ lease' = [lease EXCEPT ![m] = "ended"]
    /\ UNCHANGED <<life, assigned, occasion, owner, epochs, position, state, slice, sink>>

\* assign.lua: any assignment of all lanes to working members, unless the occasion already has one.
Assign(p) ==
    LET to == IF On("checked-assignment") THEN Working ELSE Working \cup {Nobody}
    IN  /\ state[p] = "idle" /\ Latest(p) /\ Works(p.member)
        /\ On("first-assignment-wins") => occasion # Working
        /\ assigned' \in [Lane -> to]
        /\ occasion' = Working
        /\ UNCHANGED <<lease, life, owner, epochs, position, state, slice, sink>>

\* release.lua: frees lanes of the member that are assigned to others, if these work.
Releasable(p, l) ==
    /\ Owns(p.member, l) /\ assigned[l] \notin {p.member, Nobody}
    /\ On("release-to-a-waiting-owner") => Works(assigned[l])

Release(p, lanes) ==
    /\ state[p] = "idle" /\ Latest(p)
    /\ \A l \in lanes : Releasable(p, l)
    /\ owner' = [l \in Lane |-> IF l \in lanes THEN Free ELSE owner[l]]
    /\ Renew(p)
    /\ UNCHANGED <<life, assigned, occasion, epochs, position, state, slice, sink>>

\* acquire.lua: those of the wanted lanes that are free or takeable, at one new lane epoch. Owned lanes keep theirs.
Takes(p, wanted) ==
    LET m == p.member
        takeable(o) == lease[o] = "ended" \/ ~On("lease-end")
        gained == {l \in wanted : ~Owns(m, l) /\ (owner[l] = Free \/ takeable(owner[l].member))}
        counter == IF On("no-epoch-twice") \/ epochs = 0 THEN epochs + 1 ELSE epochs
    IN  /\ state[p] = "idle" /\ Latest(p)
        /\ gained # {} => counter <= Epochs
        /\ owner' = [l \in Lane |-> IF l \in gained THEN [member |-> m, epoch |-> counter] ELSE owner[l]]
        /\ epochs' = IF gained # {} THEN counter ELSE epochs
        /\ Renew(p)

\* planning.py: Spark's offset log has these slices from now on.
Plans(p, slices) ==
    /\ state[p] = "idle" /\ slices # NoSlices
    /\ slice' = [slice EXCEPT ![p] = slices]
    /\ Goes(p, "planned")

\* Look, acquire and plan in one: all assigned lanes, from the positions in the answer.
Plan(p) ==
    /\ Takes(p, {l \in Lane : assigned[l] = p.member})
    /\ Plans(p, [l \in Lane |-> IF owner'[l].member = p.member /\ position[l] < End
           THEN [epoch |-> owner'[l].epoch, from |-> position[l], until |-> position[l] + 1, read |-> FALSE]
           ELSE Nothing])
    /\ UNCHANGED <<life, assigned, occasion, position, sink>>

\* authorize.lua: the lanes that the member still owns at their lane epochs are read, and the others are left out. If the
\* answer is lost, the process asks again.
Authorize(p) ==
    LET mine(l) == owner[l] = [member |-> p.member, epoch |-> slice[p][l].epoch] \/ ~On("authorize-every-batch")
    IN  /\ state[p] \in {"planned", "reading"} /\ Latest(p)
        /\ slice' = [slice EXCEPT ![p] = [l \in Lane |->
               [slice[p][l] EXCEPT !.read = slice[p][l] # Nothing /\ mine(l)]]]
        /\ Goes(p, "reading")
        /\ Renew(p)
        /\ UNCHANGED <<life, assigned, occasion, owner, epochs, position, sink>>

\* The sink has the batch, and Spark has written its commit log. Tasks of a process that left may still write.
Complete(p) ==
    /\ state[p] \in {"reading", "left"}
    /\ sink' = [l \in Lane |-> sink[l] \cup (IF slice[p][l].read THEN slice[p][l].from..(slice[p][l].until - 1) ELSE {})]
    /\ Goes(p, IF state[p] = "left" THEN "left" ELSE "done")
    /\ UNCHANGED <<redis, slice>>

\* commit.lua: moves the position of each lane that the member owns at the lane epoch of the slice, refuses the others.
Commit(p) ==
    LET mine(l) == owner[l] = [member |-> p.member, epoch |-> slice[p][l].epoch] \/ ~On("fence-by-lane-epoch")
        moves(l) == slice[p][l] # Nothing /\ mine(l) /\ position[l] <= slice[p][l].from
    IN  /\ state[p] = "done" /\ Latest(p)
        /\ position' = [l \in Lane |-> IF moves(l) THEN slice[p][l].until ELSE position[l]]
        /\ slice' = [slice EXCEPT ![p] = NoSlices]
        /\ Goes(p, "idle")
        /\ Renew(p)
        /\ UNCHANGED <<life, assigned, occasion, owner, epochs, sink>>

\* leave.lua: frees all lanes but those with an unconfirmed slice, which wait for the end of the lease. It may keep more.
Unconfirmed(p) == {l \in Owned(p) : state[p] \in {"reading", "done"} /\ slice[p][l].read /\ On("leave-keeps-unconfirmed")}

Leave(p, kept) ==
    LET m == p.member
    IN  /\ Lives(p) /\ Latest(p)
        /\ Unconfirmed(p) \subseteq kept /\ kept \subseteq Owned(p)
        /\ owner' = [l \in Lane |-> IF Owns(m, l) /\ l \notin kept THEN Free ELSE owner[l]]
        /\ lease' = [lease EXCEPT ![m] = IF kept = {} THEN "ended" ELSE "leaving"]
        /\ Goes(p, IF state[p] = "done" THEN "parted" ELSE "left")
        /\ UNCHANGED <<life, assigned, occasion, epochs, position, slice, sink>>

Next ==
    \/ \E m \in Member : LeaseEnds(m)
    \/ \E p \in Process :
        \/ Join(p) \/ Heartbeat(p) \/ Assign(p) \/ Plan(p)
        \/ Authorize(p) \/ Complete(p) \/ Commit(p)
        \/ Leave(p, Unconfirmed(p))
        \/ \E l \in Lane : Release(p, {l})

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------------
(* A promise: it follows from the rules, so no switch is its own. *)

\* rule: nothing-lost. All offsets left of a position are in the sink.
NothingLost == \A l \in Lane : \A o \in 0..(position[l] - 1) : o \in sink[l]

(* Rules: an invariant for each switch. [][P]_vars is an invariant of steps: x' is x after the step. *)

\* rule: checked-assignment. Each lane is assigned to a member.
CheckedAssignment == occasion # {} => \A l \in Lane : assigned[l] \in Member

\* rule: first-assignment-wins. An assignment changes only together with its occasion.
FirstAssignmentWins == [][assigned' # assigned => occasion' # occasion]_vars

\* rule: lease-end. A lane goes from one member to another only after the end of its lease, and by that other one alone.
LeaseEnd == [][\A l \in Lane : LET m == owner[l].member o == owner'[l].member
    IN  m # Nobody /\ o \notin {m, Nobody} => lease[m] = "ended" /\ assigned[l] = o]_vars

\* rule: no-epoch-twice. A lane that changes hands gets a lane epoch above all earlier ones.
NoEpochTwice == [][\A l \in Lane : owner'[l].member \notin {owner[l].member, Nobody} => owner'[l].epoch > epochs]_vars

\* rule: one-life. Only the latest life of a member begins to read.
OneLife == [][\A p \in Process : state[p] = "planned" /\ state'[p] = "reading" => p.life = life[p.member]]_vars

\* rule: authorize-every-batch. A slice is read only if its member owned the lane at its lane epoch when it was allowed.
AuthorizeEveryBatch == [][\A p \in Process, l \in Lane : state[p] = "planned" /\ slice'[p][l].read =>
    owner[l] = [member |-> p.member, epoch |-> slice'[p][l].epoch]]_vars

\* rule: fence-by-lane-epoch. A position moves only for a slice whose member owns the lane at its lane epoch.
FenceByLaneEpoch == [][\A l \in Lane : position'[l] # position[l] =>
    \E p \in Process : /\ state[p] = "done" /\ state'[p] = "idle"
                       /\ owner[l] = [member |-> p.member, epoch |-> slice[p][l].epoch]]_vars

\* rule: release-to-a-waiting-owner. A lane becomes free only for a next owner that works, unless its member leaves.
ReleaseToAWaitingOwner == [][\A l \in Lane : owner[l] # Free /\ owner'[l] = Free /\ state' = state =>
    assigned[l] # Nobody /\ Works(assigned[l])]_vars

\* rule: leave-keeps-unconfirmed. No lane becomes free while a slice of it is read or unconfirmed by its owner.
LeaveKeepsUnconfirmed == [][\A l \in Lane : owner[l] # Free /\ owner'[l] = Free =>
    LET p == [member |-> owner[l].member, life |-> life[owner[l].member]]
    IN  ~(state[p] \in {"reading", "done"} /\ slice[p][l].read)]_vars

\* Members are alike, and so are lanes: states that differ only in their names are one.
Alike == Permutations(Member) \cup Permutations(Lane)
======================================================================================
