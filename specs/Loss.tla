------------------------------------ MODULE Loss ------------------------------------
(*
What the group knows after Redis lost its state, wholly or in part, and who may say so.

    Redis     founding, nonce, run, seq, reset, lepoch, unheard, pos    may vanish, or be an older copy
    mirror    founding, reset, lepoch, pos: Kafka's own group
    process   what it knows of the group, its batch, and the evidence that it may assert
    log       of each offset: the leader epoch that wrote it; an unclean election cuts the log, and it grows again
    operator  resets the group to the beginning, the mirror first; or deletes it

    new --Join--> idle --Plan--> planned --Deliver--> sunk --Commit--> idle          Redis: lost --Recover--> recovering
                   ^  REJOIN: claim what is known, join again |                               all heard, or a session --> open

Each member reads its own lane of one partition. Who owns a lane is in Lease.tla.
*)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Member,
    End,     \* the log end: offsets 0 to End - 1 have a record
    Faults,  \* how many there are: a loss of Redis, a cut of the log, a reset, a delete, each at most once
    Seqs,    \* how far commit sequences go, so that the model is finite
    Off      \* the rules that are switched off

On(rule) == rule \notin Off

Session == "session"  \* in `unheard`: not all members of before are known, so only the session ends the recovery
Zero == [m \in Member |-> 0]
Gone == [founding |-> 0, nonce |-> 0, run |-> 0, seq |-> 0, reset |-> 0, lepoch |-> 0, unheard |-> {}, pos |-> Zero]
NoMirror == [founding |-> 0, reset |-> 0, lepoch |-> 0, pos |-> 0]
NewProcess == [stage |-> "new", founding |-> 0, nonce |-> 0, seq |-> 0,
               tag |-> <<0, 0>>, known |-> [pos |-> 0, reset |-> 0, lepoch |-> 0]]

VARIABLES
    redis,
    server,    \* the run id of the server that answers
    copy,      \* the state of Redis before its last write that matters, which may come back
    nonces,    \* the last nonce: each is used once
    mirror,
    log,
    proc,      \* of each member: its process
    writing,   \* the entries of the mirror that a member has read and not written
    operator,  \* the last step of a reset: none, mirrored, reset; and its reset epoch
    sink,      \* of each member: what arrived, as <<founding, reset epoch of its batch, offset, leader epoch>>
    faults     \* how many there were of each kind

vars == <<redis, server, copy, nonces, mirror, log, proc, writing, operator, sink, faults>>

Init ==
    /\ redis = Gone /\ server = 1 /\ copy = Gone /\ nonces = 0
    /\ mirror = NoMirror
    /\ log = [o \in 0..(End - 1) |-> 1]
    /\ proc = [m \in Member |-> NewProcess]
    /\ writing = [by |-> "nobody", entries |-> NoMirror]
    /\ operator = [step |-> "none", reset |-> 0]
    /\ sink = [m \in Member |-> {}]
    /\ faults = [losses |-> 0, cuts |-> 0, resets |-> 0, deletes |-> 0]

TypeOK ==
    /\ redis.pos \in [Member -> 0..End] /\ mirror.pos \in 0..End
    /\ redis.unheard \subseteq Member \cup {Session}
    /\ \A m \in Member : proc[m].stage \in {"new", "idle", "planned", "sunk", "ended"}
    /\ redis.nonce <= nonces

--------------------------------------------------------------------------------------
Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Min(a, b) == IF a < b THEN a ELSE b
Alive == redis.founding # 0
Fails(kind) ==
    /\ faults.losses + faults.cuts + faults.resets + faults.deletes < Faults
    /\ faults[kind] = 0 /\ faults' = [faults EXCEPT ![kind] = 1]
Leader == log[End - 1]                                             \* the leader epoch of now
EndOf(lepoch) == Cardinality({o \in 0..(End - 1) : log[o] <= lepoch})  \* where it ends in the log, as Kafka says
Recovering == redis.unheard # {} /\ On("recovering-session")

(* Each script first checks for a loss: prelude.lua, `lost`, and `before_reset` for the facts of a call. *)
Replaced(m) == On("one-founding") /\ Alive /\ proc[m].founding \notin {0, redis.founding}
IsOlder(m) == redis.run # server \/ (proc[m].nonce = redis.nonce /\ redis.seq < proc[m].seq)
IsBeforeReset(m) == redis.reset < proc[m].known.reset
IsLost(m) == Alive /\ ((On("loss-of-state") /\ IsOlder(m)) \/ (On("reset-epoch") /\ IsBeforeReset(m)))
Sound(m) == Alive /\ ~Replaced(m) /\ ~IsLost(m) /\ proc[m].stage # "ended"
Joined(m) == proc[m].stage # "new" /\ proc[m].nonce = redis.nonce

\* Facts of another reset epoch, or of an older leader epoch than the stored one, are ignored: claim.lua.
Counts(m) ==
    /\ On("reset-epoch") => proc[m].known.reset = redis.reset
    /\ On("leader-epoch-facts") => proc[m].known.lepoch >= redis.lepoch
Raised(m) == IF Counts(m) THEN [redis.pos EXCEPT ![m] = Max({@, proc[m].known.pos})] ELSE redis.pos

\* The mirror has one offset for the partition: the stable offset.
Stable == CHOOSE o \in 0..End : (\E m \in Member : redis.pos[m] = o) /\ (\A m \in Member : o <= redis.pos[m])
Keeps == copy' = IF faults.losses = 0 THEN redis ELSE Gone  \* before a write
Counted(m) == IF Raised(m) # redis.pos THEN redis.seq + 1 ELSE redis.seq  \* only writes that matter count here

Entries == [founding |-> redis.founding, reset |-> redis.reset, lepoch |-> redis.lepoch, pos |-> Stable]

\* create_positions.lua, in initialOffset: a first start creates the group, and writes the mirror before it returns. A
\* mirror of a group that Redis does not have is a loss, and no call that knows the group creates it.
Found(m) ==
    /\ ~Alive /\ proc[m].stage # "ended"
    /\ On("create-once") => proc[m].founding = 0 /\ mirror.founding = 0
    /\ nonces' = nonces + 1
    /\ redis' = [Gone EXCEPT !.founding = nonces', !.nonce = nonces', !.run = server, !.lepoch = Leader]
    /\ mirror' = [NoMirror EXCEPT !.founding = nonces', !.lepoch = Leader]
    /\ UNCHANGED <<server, copy, log, proc, writing, operator, sink, faults>>

\* life.py, `rejoining`: claim.lua, then join.lua. A process that joined before asserts what it knows first. A new one
\* waits for the end of a recovery. When all members of before are heard, the recovery is over.
Join(m) ==
    /\ Sound(m) /\ ~Joined(m) /\ Counted(m) <= Seqs
    /\ proc[m].stage = "new" => ~Recovering
    /\ redis' = [redis EXCEPT !.pos = Raised(m), !.seq = Counted(m), !.unheard = @ \ {m}]
    /\ proc' = [proc EXCEPT ![m].nonce = redis.nonce, ![m].seq = Counted(m), ![m].founding = redis.founding,
                            ![m].stage = IF @ = "new" THEN "idle" ELSE @]
    /\ IF Raised(m) # redis.pos THEN Keeps ELSE UNCHANGED copy
    /\ UNCHANGED <<server, nonces, mirror, log, writing, operator, sink, faults>>

\* recovering_until has passed.
SessionEnds ==
    /\ redis.unheard # {}
    /\ redis' = [redis EXCEPT !.unheard = {}]
    /\ UNCHANGED <<server, copy, nonces, mirror, log, proc, writing, operator, sink, faults>>

\* look, acquire, planning.py and authorize.lua in one: a batch from the position to the log end. Its beginning may be
\* asserted. Before that the member has settled a cut that a newer leader epoch shows.
Plan(m) ==
    /\ Sound(m) /\ Joined(m) /\ ~Recovering
    /\ proc[m].stage = "idle" /\ redis.pos[m] < End
    /\ On("leader-epoch-facts") => redis.lepoch = Leader
    /\ proc' = [proc EXCEPT ![m].stage = "planned", ![m].seq = redis.seq,
           ![m].tag = <<redis.founding, redis.reset>>,
           ![m].known = [pos |-> IF On("assert-beginnings") THEN redis.pos[m] ELSE End,
                         reset |-> redis.reset, lepoch |-> Leader]]
    /\ UNCHANGED <<redis, server, copy, nonces, mirror, log, writing, operator, sink, faults>>

\* The tasks read what the log has now, the sink completes the batch, and Spark passes its end as start: now this process
\* may assert the end.
Deliver(m) ==
    /\ proc[m].stage = "planned"
    /\ sink' = [sink EXCEPT ![m] = @ \cup {<<proc[m].tag, o, log[o]>> : o \in proc[m].known.pos..(End - 1)}]
    /\ proc' = [proc EXCEPT ![m].stage = "sunk", ![m].known.pos = End]
    /\ UNCHANGED <<redis, server, copy, nonces, mirror, log, writing, operator, faults>>

\* commit.lua. What the fence refuses is asserted by claim.lua, so both raise the position, and Counts decides.
Commit(m) ==
    /\ Sound(m) /\ Joined(m) /\ ~Recovering /\ Counted(m) <= Seqs
    /\ proc[m].stage = "sunk"
    /\ redis' = [redis EXCEPT !.pos = Raised(m), !.seq = Counted(m)]
    /\ proc' = [proc EXCEPT ![m].stage = "idle", ![m].seq = Counted(m), ![m].tag = <<0, 0>>]
    /\ Keeps
    /\ UNCHANGED <<server, nonces, mirror, log, writing, operator, sink, faults>>

\* Redis holds another group of this name: the query ends.
Ends(m) ==
    /\ Replaced(m) /\ proc[m].stage # "ended"
    /\ proc' = [proc EXCEPT ![m] = [NewProcess EXCEPT !.stage = "ended"]]
    /\ UNCHANGED <<redis, server, copy, nonces, mirror, log, writing, operator, sink, faults>>

\* losing.py, and recreate.lua with failOnDataLoss=false: positions above the cut move back to it, in one script with the
\* new leader epoch.
Settle(m) ==
    /\ Sound(m) /\ Joined(m) /\ ~Recovering /\ redis.seq < Seqs
    /\ redis.lepoch < Leader
    /\ redis' = [redis EXCEPT !.lepoch = Leader, !.seq = @ + 1,
           !.pos = IF On("leader-epoch-facts") THEN [l \in Member |-> Min(@[l], EndOf(redis.lepoch))] ELSE @]
    /\ Keeps
    /\ UNCHANGED <<server, nonces, mirror, log, proc, writing, operator, sink, faults>>

--------------------------------------------------------------------------------------
\* apply.py, `mirror`: reads the positions, and writes them.
Mirror(m) ==
    /\ Sound(m) /\ Joined(m) /\ writing.by = "nobody"
    /\ mirror' = Entries
    /\ UNCHANGED <<redis, server, copy, nonces, log, proc, writing, operator, sink, faults>>

\* The same with something in between: a reset, or the end of a cut. The member reads again after its write. If the reset
\* epoch is another one by then, or a position fell, it writes again.
MirrorRead(m) ==
    /\ Sound(m) /\ Joined(m) /\ writing.by = "nobody"
    /\ operator.step = "mirrored" \/ redis.lepoch < Leader
    /\ writing' = [by |-> m, entries |-> Entries]
    /\ UNCHANGED <<redis, server, copy, nonces, mirror, log, proc, operator, sink, faults>>

MirrorWrite(m) ==
    LET before == writing.entries
        same == redis.founding = before.founding /\ redis.reset = before.reset
        again == Sound(m) /\ On("mirror-after-reset") /\ (~same \/ Stable < before.pos)
    IN  /\ writing.by = m
        /\ mirror' = before
        /\ writing' = IF again THEN [writing EXCEPT !.entries = Entries] ELSE [by |-> "nobody", entries |-> NoMirror]
        /\ UNCHANGED <<redis, server, copy, nonces, log, proc, operator, sink, faults>>

\* recovery.py and recover.lua: the highest proof of each lane, of the highest reset epoch: what Redis still has, the
\* mirror, and what this process knows. Proofs of a log that was cut count up to the cut. A lane without a proof is
\* UNPROVEN: the process waits for others, which this model does not have. The newest leader epoch of the proofs goes with
\* them, unless Redis has a position above the proof of its lane: then it keeps its own; docs/spec.md says why.
Recover(m) ==
    LET p == proc[m]
        founding == IF Alive THEN redis.founding ELSE IF p.founding # 0 THEN p.founding ELSE mirror.founding
        mirrored == mirror.founding = founding
        mine == p.founding = founding
        reset == Max({IF Alive THEN redis.reset ELSE 0, IF mirrored THEN mirror.reset ELSE 0, p.known.reset})
        left(pos, lepoch) == IF On("leader-epoch-facts") THEN Min(pos, EndOf(lepoch)) ELSE pos
        own == Alive /\ redis.reset = reset
        proofs(l) == (IF own THEN {redis.pos[l]} ELSE {})
            \cup (IF mirrored /\ mirror.reset = reset THEN {left(mirror.pos, mirror.lepoch)} ELSE {})
            \cup (IF l = m /\ mine /\ p.known.reset = reset THEN {left(p.known.pos, p.known.lepoch)} ELSE {})
        lepochs == (IF mirrored /\ mirror.reset = reset THEN {mirror.lepoch} ELSE {})
            \cup (IF mine /\ p.known.reset = reset /\ p.known.lepoch # 0 THEN {p.known.lepoch} ELSE {})
        newest == Max(lepochs)
        under(l) == {0} \cup (IF mirrored /\ mirror.reset = reset /\ mirror.lepoch = newest THEN {mirror.pos} ELSE {})
            \cup (IF l = m /\ mine /\ p.known.reset = reset /\ p.known.lepoch = newest THEN {p.known.pos} ELSE {})
        keeps == own /\ (lepochs = {} \/ newest <= redis.lepoch \/ \E l \in Member : redis.pos[l] > Max(under(l)))
        as_new == Alive /\ p.nonce = redis.nonce /\ p.seq <= redis.seq
    IN  /\ p.stage # "ended" /\ ~Replaced(m)
        /\ IsLost(m) \/ (~Alive /\ (p.founding # 0 \/ mirror.founding # 0))
        /\ ~Alive /\ p.founding # 0 => mirror.founding \in {0, p.founding}
        /\ On("recover-by-proof") => \A l \in Member : proofs(l) # {}
        /\ nonces' = nonces + 1
        /\ redis' = [founding |-> founding, nonce |-> nonces', run |-> server, seq |-> redis.seq, reset |-> reset,
                     lepoch |-> IF keeps THEN redis.lepoch ELSE IF lepochs = {} THEN Leader ELSE newest,
                     unheard |-> IF as_new THEN {l \in Member : proc[l].nonce = redis.nonce /\ proc[l].stage # "ended"}
                                 ELSE {Session},
                     pos |-> [l \in Member |-> IF proofs(l) = {} THEN End ELSE Max(proofs(l))]]
        /\ UNCHANGED <<server, copy, mirror, log, proc, writing, operator, sink, faults>>

--------------------------------------------------------------------------------------
(* The world. *)

\* Another server answers: empty, or without the last write. Or the same server lost that write.
Lose ==
    /\ Alive /\ Fails("losses")
    /\ \/ redis' = Gone /\ server' = server + 1
       \/ copy # Gone /\ redis' = copy /\ server' \in {server, server + 1}
    /\ copy' = Gone
    /\ UNCHANGED <<nonces, mirror, log, proc, writing, operator, sink>>

\* An unclean election cuts the log, and it grows again with other records.
Cut ==
    /\ Fails("cuts")
    /\ \E at \in 0..(End - 1) : log' = [o \in 0..(End - 1) |-> IF o < at THEN log[o] ELSE Leader + 1]
    /\ UNCHANGED <<redis, server, copy, nonces, mirror, proc, writing, operator, sink>>

\* operations.py: a reset to the beginning, at a new reset epoch, writes the mirror first.
ResetMirror ==
    /\ Alive /\ redis.run = server /\ redis.unheard = {} /\ operator.step = "none" /\ Fails("resets")
    /\ operator' = [step |-> "mirrored", reset |-> redis.reset + 1]
    /\ mirror' = [Entries EXCEPT !.reset = redis.reset + 1, !.pos = 0]
    /\ UNCHANGED <<redis, server, copy, nonces, log, proc, writing, sink>>

\* reset.lua: SUPERSEDED if the reset epoch is another one by now.
ResetRedis ==
    /\ operator.step = "mirrored" /\ Alive /\ redis.run = server /\ redis.reset + 1 = operator.reset
    /\ nonces' = nonces + 1
    /\ redis' = [redis EXCEPT !.nonce = nonces', !.reset = operator.reset, !.pos = Zero, !.unheard = {}]
    /\ operator' = [operator EXCEPT !.step = "reset"]
    /\ Keeps
    /\ UNCHANGED <<server, mirror, log, proc, writing, sink, faults>>

\* The operator writes the mirror from Redis, unless Redis is from before the reset by then.
ResetEnds ==
    /\ operator.step = "reset"
    /\ mirror' = IF Alive /\ redis.run = server /\ redis.reset >= operator.reset THEN Entries ELSE mirror
    /\ operator' = [operator EXCEPT !.step = "none"]
    /\ UNCHANGED <<redis, server, copy, nonces, log, proc, writing, sink, faults>>

\* delete.lua, after the mirror. Processes that stand still know the group all the same.
Delete ==
    /\ Alive /\ redis.run = server /\ operator.step = "none" /\ Fails("deletes")
    /\ mirror' = NoMirror
    /\ redis' = Gone
    /\ UNCHANGED <<server, copy, nonces, log, proc, writing, operator, sink>>

\* After a delete: a query starts with a new checkpoint, and knows nothing.
Start(m) ==
    /\ faults.deletes > 0 /\ proc[m] # NewProcess /\ writing.by # m
    /\ proc' = [proc EXCEPT ![m] = NewProcess]
    /\ UNCHANGED <<redis, server, copy, nonces, mirror, log, writing, operator, sink, faults>>

Next ==
    \/ SessionEnds \/ Lose \/ Cut \/ ResetMirror \/ ResetRedis \/ ResetEnds \/ Delete
    \/ \E m \in Member :
        \/ Found(m) \/ Join(m) \/ Plan(m) \/ Deliver(m) \/ Commit(m) \/ Ends(m) \/ Settle(m)
        \/ Mirror(m) \/ MirrorRead(m) \/ MirrorWrite(m) \/ Recover(m) \/ Start(m)

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------------
(* A promise: it follows from the rules, so no switch is its own. *)

\* rule: nothing-lost. All offsets left of a position are in the sink: of this group, since the last reset, and in the log
\* of now as soon as Redis has its leader epoch.
NothingLost == Alive /\ redis.lepoch = Leader =>
    \A m \in Member : \A o \in 0..(redis.pos[m] - 1) : <<<<redis.founding, redis.reset>>, o, log[o]>> \in sink[m]

(* Rules: an invariant for each switch. [][P]_vars is an invariant of steps: x' is x after the step. *)

\* rule: mirror-after-reset. When nobody is about to write the mirror, it is not of an older reset epoch than Redis. This
\* needs a Redis that answers until the writer has looked again.
MirrorAfterReset == faults.losses = 0 /\ Alive /\ redis.founding = mirror.founding =>
    operator.step = "reset" \/ writing.by # "nobody" \/ mirror.reset >= redis.reset

\* rule: create-once. No group begins while the mirror proves another one.
CreateOnce == [][~Alive /\ redis'.founding # 0 /\ redis'.founding = redis'.nonce => mirror.founding = 0]_vars

\* rule: recover-by-proof. A recovery begins at proven positions: those of Redis, the mirror or a process.
RecoverByProof == [][redis'.founding # 0 /\ redis'.nonce # redis.nonce => \A l \in Member :
    redis'.pos[l] <= Max({redis.pos[l], mirror.pos, proc[l].known.pos, copy.pos[l]})]_vars

\* A position rises without a recovery: by a commit or a claim of its process.
Rises(m) == redis'.nonce = redis.nonce /\ redis'.run = redis.run /\ redis'.seq > redis.seq /\ redis'.pos[m] > redis.pos[m]

\* rule: one-founding. Only a process of this group raises its positions.
OneFounding == [][\A m \in Member : Rises(m) => proc[m].founding = redis.founding]_vars

\* rule: reset-epoch. Only a fact of the reset epoch in force raises a position.
ResetEpoch == [][\A m \in Member : Rises(m) => proc[m].known.reset = redis.reset]_vars

\* rule: leader-epoch-facts. No fact of an older leader epoch than the stored one raises a position.
LeaderEpochFacts == [][\A m \in Member : Rises(m) => proc[m].known.lepoch >= redis.lepoch]_vars

\* rule: assert-beginnings. A position rises to the end of a batch only after the sink has it.
AssertBeginnings == [][\A m \in Member : Rises(m) /\ proc[m].stage = "planned" => redis'.pos[m] < End]_vars

Plans(m) == proc[m].stage = "idle" /\ proc'[m].stage = "planned"

\* rule: loss-of-state. No member plans by a state that is older than it knows.
LossOfState == [][\A m \in Member : Plans(m) => ~IsOlder(m)]_vars

\* rule: recovering-session. No member plans before all members of before are heard, or a session has passed.
RecoveringSession == [][\A m \in Member : Plans(m) => redis.unheard = {}]_vars

\* Members are alike: states that differ only in their names are one.
Alike == Permutations(Member)
======================================================================================
