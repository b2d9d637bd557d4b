---------------------------------- MODULE LossTrace ----------------------------------
(*
Whether the group really knew what Loss.tla allows after each loss: recorded schedules of the simulation, step by step.

A record is of one partition, with all processes that ever read it. Each step names what a process, the log, the
mirror or an operator did, with what Redis has afterwards. LeaseTrace.tla says how TLC replays it.

    model                 each member has a lane of its own, and reads it to the log end in one batch
    recorded schedules    lanes move between members; batches of any length; processes are killed, and start again
*)
EXTENDS Loss, Sequences, Recorded

VARIABLES
    trace,   \* its number in Traces
    cursor,  \* the number of its next step
    era,     \* founding and reset epoch in force, also while Redis has lost them
    base,    \* of each lane: its position when they came into force
    from,    \* of each process and lane: where its last batch begins
    until,   \* where it ends
    may,     \* up to where the process may assert the lane
    reads,   \* of each process: the lanes of its batch that Redis authorised
    sunk,    \* of each process: the sink has its last batch
    saw      \* of each process: founding and reset epoch when it last read them for the mirror

inForce == <<era, base>>
mine == <<from, until, may, reads, sunk>>
known == <<inForce, mine>>
replay == <<vars, trace, cursor, known, saw>>
now == Traces[trace][cursor]
p == now.p

Nowhere == [l \in Member |-> 0]
Nothing == [l \in Member |-> {}]
Unread == [stage |-> "new", founding |-> 0, nonce |-> 0, seq |-> 0, tag |-> <<0, 0>>,
           known |-> [pos |-> 0, reset |-> 0, lepoch |-> 0]]
LogOf(firsts) == [o \in 0..(End - 1) |-> 1 + Cardinality({i \in 1..Len(firsts) : firsts[i] <= o})]

Begin ==
    /\ redis = Gone /\ server = 1 /\ copy = Gone /\ nonces = 0 /\ mirror = NoMirror
    /\ trace \in 1..Len(Traces) /\ cursor = 1
    /\ log = LogOf(Traces[trace][1].firsts)
    /\ proc = [q \in Processes |-> Unread]
    /\ writing = [by |-> "nobody", entries |-> NoMirror] /\ operator = [step |-> "none", reset |-> 0]
    /\ sink = [l \in Member |-> {}]
    /\ faults = [losses |-> 0, cuts |-> 0, resets |-> 0, deletes |-> 0]
    /\ era = <<0, 0>> /\ base = Nowhere /\ saw = [q \in Processes |-> {}]
    /\ from = [q \in Processes |-> Nowhere] /\ until = from /\ may = from
    /\ reads = [q \in Processes |-> {}] /\ sunk = [q \in Processes |-> FALSE]

\* What there is after the step. A step names only what has changed.
Recorded(what, before) == IF what \in DOMAIN now THEN now[what] ELSE before
AsRecorded ==
    /\ redis' = [what \in DOMAIN redis |-> Recorded(what, redis[what])]
    /\ mirror' = Recorded("mirror", mirror)
    /\ log' = IF "firsts" \in DOMAIN now /\ cursor > 1 THEN LogOf(now.firsts) ELSE log
Only(what) == \A each \in DOMAIN redis \ what : redis'[each] = redis[each]
Elsewhere == UNCHANGED <<log, mirror>>
Beside == UNCHANGED <<server, copy, nonces, writing, faults>>
Operates ==
    operator' = CASE now.ev = "reset mirror" -> [step |-> "mirrored", reset |-> mirror'.reset, pos |-> mirror'.pos]
        [] now.ev = "reset" -> [operator EXCEPT !.step = "reset"]
        [] now.ev = "reset ends" -> [operator EXCEPT !.step = "none"]
        [] now.ev = "delete mirror" -> [step |-> "deletes", reset |-> 0, pos |-> 0]
        [] OTHER -> operator

\* A group, or its next reset epoch, begins: what was in the sink before does not count for it.
BeginsAnew == era' = <<redis'.founding, redis'.reset>> /\ base' = redis'.pos /\ sink' = Nothing

\* The same server answers, with the state that it has recovered.
Answers == Alive /\ redis.run = server
Higher(now_at, before) == \A l \in Member : now_at[l] >= before[l]

(* Steps that only the replay has. *)

Begins == UNCHANGED <<redis, log, mirror, proc, sink, known>>

\* A process begins. Its checkpoint may have a batch, and tells where that began.
Starts ==
    /\ proc' = [proc EXCEPT ![p] = [Unread EXCEPT !.founding = now.knows, !.tag = <<now.knows, now.at>>,
                    !.known = [pos |-> 0, reset |-> now.at, lepoch |-> now.under]]]
    /\ from' = [from EXCEPT ![p] = now.begins] /\ until' = [until EXCEPT ![p] = now.ends]
    /\ may' = [may EXCEPT ![p] = now.begins]
    /\ sunk' = [sunk EXCEPT ![p] = now.sunk]
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<sink, inForce, reads>>

\* acquire.lua, which cuts ranges and moves no position.
Acquire ==
    /\ Sound(p) /\ Joined(p) /\ ~Recovering
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

\* show.lua: a newer leader epoch, of a log that was not cut below a position, or that no position is known of.
Show ==
    /\ Sound(p) /\ redis'.lepoch >= redis.lepoch
    /\ Only({"lepoch"}) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

\* Redis answers from elsewhere, or not at all.
Loses == (~Alive' \/ redis'.run # server) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

(* Actions of the model. *)

Founds ==
    /\ ~Alive /\ now.knows = FALSE /\ mirror.founding = 0
    /\ redis'.founding = redis'.nonce /\ redis'.run = server /\ redis'.unheard = {} /\ redis'.lepoch = 0
    /\ \E o \in 0..End : \A l \in Member : redis'.pos[l] = o
    /\ BeginsAnew /\ Elsewhere /\ UNCHANGED <<proc, mine>>

\* claim.lua. Its caller is no member: some process of this group may assert that much.
Claims ==
    /\ Answers /\ now.claims = redis.founding /\ now.at = redis.reset
    /\ now.under = 0 \/ now.under >= redis.lepoch
    /\ Higher(redis'.pos, redis.pos)
    /\ \E q \in Processes : proc[q].founding \in {0, redis.founding} /\ proc[q].known.reset = redis.reset /\
           \A l \in Member : redis'.pos[l] > redis.pos[l] => redis'.pos[l] <= may[q][l]
    /\ Only({"pos"}) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

Joins ==
    /\ Answers /\ ~Replaced(p)
    /\ proc[p].stage = "new" => ~Recovering
    /\ redis'.unheard \in {redis.unheard \ {now.m}, redis.unheard}
    /\ redis'.unheard = redis.unheard => now.m \notin redis.unheard
    /\ proc' = [proc EXCEPT ![p].nonce = redis.nonce, ![p].founding = redis.founding, ![p].stage = "idle"]
    /\ Only({"unheard"}) /\ Elsewhere /\ UNCHANGED <<sink, known>>

SessionIsOver == SessionEnds /\ UNCHANGED known

\* The WAL has a batch. If it reads records, its leader epoch is in Redis, unless that was lost since.
PlanThese(q) ==
    /\ Sound(q) /\ Joined(q) /\ now.begins # now.ends => now.under <= redis.lepoch
    /\ from' = [from EXCEPT ![q] = now.begins] /\ until' = [until EXCEPT ![q] = now.ends]
    /\ sunk' = [sunk EXCEPT ![q] = FALSE] /\ reads' = [reads EXCEPT ![q] = {}]
    /\ proc' = [proc EXCEPT ![q].known.lepoch = now.under, ![q].known.reset = now.at, ![q].tag = <<now.knows, now.at>>]
    /\ may' = IF proc'[q].tag = proc[q].tag THEN may ELSE [may EXCEPT ![q] = Nowhere]
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<sink, inForce>>

\* From now on the process may assert the beginning.
Authorizes ==
    /\ Sound(p) /\ Joined(p) /\ ~Recovering
    /\ reads' = [reads EXCEPT ![p] = now.lanes]
    /\ may' = [may EXCEPT ![p] = [l \in Member |-> Max({@[l], from[p][l]})]]
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<proc, sink, inForce, from, until, sunk>>

Delivers ==
    /\ sink' = IF proc[p].tag = era THEN [l \in Member |-> sink[l] \cup now.got[l]] ELSE sink
    /\ sunk' = [sunk EXCEPT ![p] = TRUE]
    /\ may' = [may EXCEPT ![p] = [l \in Member |-> IF l \in reads[p] THEN Max({@[l], until[p][l]}) ELSE @[l]]]
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<proc, inForce, from, until, reads>>

Commits ==
    /\ Sound(p) /\ Joined(p) /\ ~Recovering
    /\ Higher(redis'.pos, redis.pos)
    /\ \A l \in Member : redis'.pos[l] > redis.pos[l] =>
           /\ sunk[p] /\ redis'.pos[l] <= until[p][l] /\ proc[p].known.reset = redis.reset
           /\ proc[p].known.lepoch >= redis.lepoch \/ redis'.pos[l] <= EndOf(proc[p].known.lepoch)
    /\ Only({"pos"}) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

\* recreate.lua. The cut is not above the end of the leader epoch that Redis has with the positions. If the log was cut
\* again since the member has looked, Redis gets an older leader epoch than that of now, and the next look settles it.
Settles ==
    /\ Answers /\ redis'.lepoch >= redis.lepoch
    /\ redis'.pos = [l \in Member |-> Min(redis.pos[l], now.cut)]
    /\ redis.lepoch \in 1..redis'.lepoch - 1 /\ redis'.lepoch = Leader => now.cut <= EndOf(redis.lepoch)
    /\ Only({"pos", "lepoch"}) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

\* recover.lua, at the highest reset epoch. The caller proves at most what a process may assert, or the mirror had.
\* After ResetMirror the mirror proves a reset that Redis does not know yet. A process that has read it recovers to it,
\* also if the operator died since, or was refused. With onStateLoss=earliest a process may recover a group that nothing
\* names: it begins anew.
Mirrored == operator.step = "mirrored"
Recovers ==
    LET named == IF Alive THEN redis.founding ELSE IF now.knows # 0 THEN now.knows ELSE mirror.founding
        of == IF named = 0 THEN redis'.founding ELSE named
        mirrored == mirror.founding = of
        reset == redis'.reset
        those == {each \in Processes : proc[each].founding \in {0, of} /\ proc[each].known.reset = reset}
        proven(l) == {0} \cup (IF redis.reset = reset THEN {redis.pos[l]} ELSE {})
            \cup (IF mirrored /\ mirror.reset = reset THEN {mirror.pos} ELSE {})
            \cup (IF Mirrored /\ operator.reset = reset THEN {operator.pos} ELSE {})
            \cup {may[q][l] : q \in those}
    IN  /\ ~(Alive /\ Replaced(p))
        /\ ~Alive \/ redis.run # server \/ (Mirrored /\ operator.reset > redis.reset)
        /\ redis'.founding = of /\ redis'.nonce \notin {0, redis.nonce} /\ redis'.run = server
        /\ reset >= redis.reset /\ (mirrored => reset >= mirror.reset) /\ redis'.unheard # {}
        /\ reset \in {redis.reset, mirror.reset, operator.reset} \cup {proc[each].known.reset : each \in Processes}
        /\ reset = redis.reset => Higher(redis'.pos, redis.pos)
        /\ \A l \in Member : redis'.pos[l] <= Max(proven(l))
        /\ redis'.lepoch \in {redis.lepoch, now.under}
        /\ redis'.lepoch # redis.lepoch /\ redis.lepoch # 0 => \A l \in Member : redis'.pos[l] <= now.proven[l]
        /\ IF <<of, reset>> = era THEN UNCHANGED <<sink, inForce>> ELSE BeginsAnew
        /\ Elsewhere /\ UNCHANGED <<proc, mine>>

\* An election: records from some offset on are gone, or none are.
Cuts ==
    /\ \E at \in 0..End : \A o \in 0..(End - 1) : IF o < at THEN log'[o] = log[o] ELSE log'[o] > Leader
    /\ Only({}) /\ UNCHANGED <<mirror, proc, sink, known>>

Mirrors ==
    /\ Answers => mirror'.founding = redis.founding /\ mirror'.reset >= redis.reset
    /\ mirror'.founding # 0
    /\ Only({}) /\ UNCHANGED <<log, proc, sink, known>>

\* A process has stood still between its read and its write: of a group, or a reset epoch, that is not in force.
MirrorsLate ==
    /\ \E q \in Processes : <<mirror'.founding, mirror'.reset>> \in saw[q]
    /\ Only({}) /\ UNCHANGED <<log, proc, sink, known>>

ReadsForMirror ==
    /\ Answers /\ <<redis.founding, redis.reset>> \in saw'[p]
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

\* Redis has another group of this name. A process that has not joined may know its group too.
IsReplaced ==
    /\ Alive /\ now.knows \notin {0, redis.founding} /\ proc[p].founding \in {0, now.knows}
    /\ proc[p].stage # "ended"
    /\ proc' = [proc EXCEPT ![p].stage = "ended"]
    /\ Only({}) /\ Elsewhere /\ UNCHANGED <<sink, known>>

\* The operator writes the mirror first, at a new reset epoch.
ResetsMirror ==
    /\ Alive => mirror'.founding = redis.founding
    /\ mirror'.reset > redis.reset
    /\ Only({}) /\ UNCHANGED <<log, proc, sink, known>>

\* reset.lua: to one offset, or this partition stays. A reset of all positions needs none of the old ones.
Resets ==
    /\ Alive /\ Mirrored /\ operator.reset = redis'.reset
    /\ redis'.reset > redis.reset /\ redis'.nonce # redis.nonce /\ redis'.founding = redis.founding
    /\ redis'.run = server /\ redis'.unheard = {} /\ redis'.lepoch = redis.lepoch
    /\ redis'.pos = IF now.to < 0 THEN redis.pos ELSE [l \in Member |-> now.to]
    /\ BeginsAnew /\ Elsewhere /\ UNCHANGED <<proc, mine>>

\* The mirror is removed before Redis.
DeletesMirror == mirror' = NoMirror /\ Only({}) /\ UNCHANGED <<log, proc, sink, known>>
Deletes ==
    /\ operator.step = "deletes" \/ mirror.founding = 0
    /\ redis'.nonce = 0
    /\ Elsewhere /\ UNCHANGED <<proc, sink, known>>

--------------------------------------------------------------------------------------
\* rule: nothing-lost. The records left of an offset are in the sink, as far as the log of a leader epoch has them. This
\* is so for the group and the reset epoch in force, from where they began.
Records == Traces[trace][1].records
Arrived(l, offset) == \A r \in Records[l] : base[l] <= r[1] /\ r[1] < offset /\ log[r[1]] = r[2] => r \in sink[l]
NothingLostHere == <<redis.founding, redis.reset>> = era /\ redis.lepoch = Leader =>
    \A l \in Member : Arrived(l, redis.pos[l])
Left(pos, lepoch) == IF lepoch = 0 THEN pos ELSE Min(pos, EndOf(lepoch))
MirrorIsTrue == <<mirror.founding, mirror.reset>> = era => \A l \in Member : Arrived(l, Left(mirror.pos, mirror.lepoch))

Step ==
    /\ cursor <= Len(Traces[trace])
    /\ cursor' = cursor + 1 /\ UNCHANGED trace
    /\ AsRecorded /\ Beside /\ Operates
    /\ IF now.ev = "mirror read" THEN saw' = [saw EXCEPT ![p] = now.read] ELSE UNCHANGED saw
    /\ CASE now.ev = "begins" -> Begins
         [] now.ev = "starts" -> Starts
         [] now.ev = "start" -> Starts /\ now.knows = 0
         [] now.ev = "found" -> Founds
         [] now.ev = "claim" -> Claims
         [] now.ev = "join" -> Joins
         [] now.ev = "session ends" -> SessionIsOver
         [] now.ev = "acquire" -> Acquire
         [] now.ev = "plan" -> PlanThese(p)
         [] now.ev = "authorize" -> Authorizes
         [] now.ev = "deliver" -> Delivers
         [] now.ev = "commit" -> Commits
         [] now.ev = "settle" -> Settles
         [] now.ev = "show" -> Show
         [] now.ev = "recover" -> Recovers
         [] now.ev = "loses" -> Loses
         [] now.ev = "log" -> Cuts
         [] now.ev = "mirror" -> Mirrors
         [] now.ev = "reset ends" -> Mirrors /\ operator.step = "reset"
         [] now.ev = "mirror read" -> ReadsForMirror
         [] now.ev = "mirror write" -> MirrorsLate
         [] now.ev = "ends" -> IsReplaced
         [] now.ev = "reset mirror" -> ResetsMirror
         [] now.ev = "reset" -> Resets
         [] now.ev = "delete mirror" -> DeletesMirror
         [] now.ev = "delete" -> Deletes
    /\ NothingLostHere' /\ MirrorIsTrue'

Replay == Step \/ (cursor > Len(Traces[trace]) /\ UNCHANGED replay)
======================================================================================
