------------------------------------ MODULE Batch ------------------------------------
(*
One batch from its plan to its commit, with a crash at each arrow.

    idle --Plan--> planned --WriteWal--> wal --Authorize--> reading --Sink--> sunk --WriteLog--> logged --Commit--> idle
                                          |                 Attempt            ^                 ^
                                          |                 Seal               |                 |
                                          +--------- Skip: the sink drops it --+     restart ----+ or at wal

    Redis       position, mine, digest, sealed, seal
    checkpoint  wal, plan, log: Spark's WAL and commit log
    process     stage, next, fresh, knows, may, fixed, asPlanned, agreed, output: a crash forgets these
    sink        of each batch id: what it holds; it drops a batch whose id it has

One member; of another one only that it takes lanes over. A task reads one lane. A batch is planned to the log end, and
each task may end before that.
*)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Lane,
    End,      \* the log end: offsets 0 to End - 1 have a record
    Batches,  \* how many batches are planned at most
    Crashes,  \* how many crashes there are at most
    Off       \* the rules that are switched off

On(rule) == rule \notin Off

Unknown == Batches + 1  \* in place of a digest: Redis lost the member's entry
Open == End + 1         \* in place of an end
AllOpen == [l \in Lane |-> Open]
NoPlan == [l \in Lane |-> [from |-> 0, until |-> 0]]
Absent == [is |-> "absent", of |-> NoPlan]

VARIABLES
    position,   \* of each lane
    mine,       \* the lanes that the member owns at their lane epochs
    digest,     \* of the batch that the member authorised last: its id, 0 for none, or Unknown
    sealed,     \* whether that batch has a seal
    seal,       \* its ends
    wal,        \* the id of the last batch in the WAL
    plan,       \* what that batch reads
    log,        \* the id of the last batch in the commit log
    stage,      \* see above; "refused" once the query has ended with SINK_SKIPPED_BATCH
    next,       \* a plan that is not in the WAL
    fresh,      \* whether this process planned the last batch
    knows,      \* whether this process authorised the last batch
    may,        \* the lanes that its tasks read
    fixed,      \* the ends that a replay must have
    asPlanned,  \* whether it was sealed at its planned ends, for tasks that cannot report
    agreed,     \* of each lane: the first end that a task reported
    output,     \* of each lane: the end of the attempt whose records the sink gets
    sink,
    crashes,
    lost        \* whether Redis has lost the member's entry once

redis == <<position, mine, digest, sealed, seal>>
checkpoint == <<wal, plan, log>>
tasks == <<may, fixed, asPlanned, agreed, output>>
process == <<stage, next, fresh, knows, tasks>>
vars == <<redis, checkpoint, process, sink, crashes, lost>>

TypeOK ==
    /\ position \in [Lane -> 0..End]
    /\ mine \subseteq Lane
    /\ digest \in 0..Unknown
    /\ seal \in [Lane -> 0..End]
    /\ log <= wal /\ wal <= log + 1
    /\ stage \in {"idle", "planned", "wal", "reading", "sunk", "logged", "refused"}
    /\ may \subseteq Lane
    /\ \A ends \in {fixed, agreed, output} : ends \in [Lane -> 0..Open]

\* The sink may hold a batch of another checkpoint under the first id: batch ids begin at 1 with each checkpoint here.
Init ==
    /\ position = [l \in Lane |-> 0]
    /\ mine = Lane
    /\ digest = 0
    /\ sealed = FALSE
    /\ seal = [l \in Lane |-> 0]
    /\ wal = 0 /\ log = 0
    /\ plan = NoPlan /\ next = NoPlan
    /\ stage = "idle"
    /\ fresh = FALSE /\ knows = FALSE
    /\ may = {} /\ fixed = AllOpen /\ agreed = AllOpen /\ output = AllOpen
    /\ asPlanned = FALSE
    /\ \E first \in {"absent", "foreign"} :
           sink = [i \in 1..Batches |-> IF i = 1 THEN [Absent EXCEPT !.is = first] ELSE Absent]
    /\ crashes = 0
    /\ lost = FALSE

--------------------------------------------------------------------------------------
Begins == [l \in Lane |-> plan[l].from]
PlannedEnds == [l \in Lane |-> plan[l].until]
Slices == {l \in Lane : plan[l].from < plan[l].until}
Read == may \cap Slices  \* the lanes that have a task
Lower(a, b) == IF a < b THEN a ELSE b

\* planning.py, at the end of latestOffset(start).
Plans(slices) ==
    /\ stage = "idle" /\ wal < Batches
    /\ next' = slices
    /\ stage' = "planned"
    /\ UNCHANGED <<redis, checkpoint, fresh, knows, tasks, sink, crashes, lost>>

\* All owned lanes, from their positions.
Plan ==
    /\ \E l \in mine : position[l] < End
    /\ Plans([l \in Lane |-> [from |-> position[l], until |-> IF l \in mine THEN End ELSE position[l]]])

\* Spark writes the offset to its WAL before any task reads. From here on a restart replays the batch.
WriteWal ==
    /\ stage = "planned"
    /\ wal' = wal + 1
    /\ plan' = next
    /\ next' = NoPlan
    /\ stage' = "wal"
    /\ fresh' = TRUE /\ knows' = FALSE
    /\ may' = {} /\ fixed' = AllOpen /\ asPlanned' = FALSE /\ agreed' = AllOpen /\ output' = AllOpen
    /\ UNCHANGED <<redis, log, sink, crashes, lost>>

\* authorize.lua, in partitions(start, end): stores the digest, and says whether an earlier life sealed this batch. While
\* it is not known whether all tasks can report their ends, it seals the batch at its planned ends. The member may leave
\* out a lane that was struck, and frees it first (abandon.lua). A sink with a foreign batch of this id drops it before
\* Spark calls partitions.
Authorize ==
    LET same == digest = wal
        unknown == digest = Unknown /\ ~fresh /\ On("unknown-is-beginning")
    IN  /\ stage = "wal" /\ sink[wal].is # "foreign"
        /\ \E out \in {{}} \cup {{l} : l \in mine} :
               /\ may' = mine \ out
               /\ mine' = IF On("omit-what-was-skipped") THEN mine \ out ELSE mine
        /\ asPlanned' \in IF same \/ unknown THEN {FALSE} ELSE BOOLEAN
        /\ fixed' = CASE unknown -> Begins
                      [] same /\ sealed /\ On("replay-fixed") -> seal
                      [] OTHER -> AllOpen
        /\ digest' = IF unknown THEN Unknown ELSE wal
        /\ IF same THEN UNCHANGED <<sealed, seal>>
           ELSE /\ sealed' = (asPlanned' /\ On("seal-as-planned"))
                /\ seal' = IF sealed' THEN PlannedEnds ELSE [l \in Lane |-> 0]
        /\ stage' = "reading"
        /\ knows' = TRUE
        /\ UNCHANGED <<position, checkpoint, next, fresh, agreed, output, sink, crashes, lost>>

Ends(l) == CASE fixed[l] # Open -> {fixed[l]}
             [] agreed[l] # Open /\ On("first-end-wins") -> {agreed[l]}
             [] OTHER -> plan[l].from..plan[l].until

\* ending.py: an attempt of a task reads to an end, and reports it. The first end counts, and a later attempt asks for it.
\* In a batch that is sealed as planned, the end is added to the seal before the task ends.
Attempt(l) ==
    /\ stage = "reading" /\ l \in Read
    /\ \E end \in Ends(l) : output' = [output EXCEPT ![l] = end]
    /\ agreed' = [agreed EXCEPT ![l] = IF @ = Open THEN output'[l] ELSE @]
    /\ seal' = [seal EXCEPT ![l] = IF asPlanned /\ sealed THEN Lower(@, agreed'[l]) ELSE @]
    /\ UNCHANGED <<position, mine, digest, sealed, checkpoint, stage, next, fresh, knows, may, fixed, asPlanned>>
    /\ UNCHANGED <<sink, crashes, lost>>

\* A task behind a firewall reads to its planned end, and reports nothing. Only a batch that is sealed as planned has such.
Silent(l) ==
    /\ stage = "reading" /\ l \in Read
    /\ asPlanned /\ agreed[l] = Open
    /\ output' = [output EXCEPT ![l] = plan[l].until]
    /\ UNCHANGED <<redis, checkpoint, stage, next, fresh, knows, may, fixed, asPlanned, agreed, sink, crashes, lost>>

\* seal.lua, before the last task gets its answer. A batch without tasks needs none. It names early ends only: a lane without a task counts to its end.
Seal ==
    /\ stage = "reading" /\ ~sealed /\ digest = wal
    /\ \A l \in Read : agreed[l] # Open
    /\ sealed' = TRUE
    /\ seal' = [l \in Lane |-> IF l \in Read THEN agreed[l] ELSE plan[l].until]
    /\ UNCHANGED <<position, mine, digest, checkpoint, process, sink, crashes, lost>>

\* All tasks have ended, and the sink completes the batch. It drops one whose id it has.
Sink ==
    /\ stage = "reading"
    /\ \A l \in Read : output[l] # Open
    /\ On("seal-before-sink") => sealed \/ digest = Unknown \/ Read = {}
    /\ sink' = [sink EXCEPT ![wal] =
           IF @.is = "ours" THEN @
           ELSE [is |-> "ours", of |-> [l \in Lane |->
                [from |-> plan[l].from, until |-> IF l \in Read THEN output[l] ELSE plan[l].from]]]]
    /\ stage' = "sunk"
    /\ UNCHANGED <<redis, checkpoint, next, fresh, knows, tasks, crashes, lost>>

\* Spark's file sink drops a batch id that its folder has before it asks for partitions. So nobody reads the batch.
Skip ==
    /\ stage = "wal" /\ sink[wal].is # "absent"
    /\ stage' = "sunk"
    /\ UNCHANGED <<redis, checkpoint, next, fresh, knows, tasks, sink, crashes, lost>>

\* Spark writes its commit log.
WriteLog ==
    /\ stage = "sunk"
    /\ log' = wal
    /\ stage' = "logged"
    /\ UNCHANGED <<redis, wal, plan, next, fresh, knows, tasks, sink, crashes, lost>>

\* The true ends of the batch that is `start` (committing.py): what its tasks reported to this process; else the seal of
\* an earlier life; else the beginnings, because no life could complete it, or nobody knows its ends. A batch that the
\* member never authorised stays as planned: then commit.lua refuses it.
TrueEnds ==
    CASE knows -> [l \in Lane |-> IF l \notin Read THEN plan[l].from
                                  ELSE IF agreed[l] # Open THEN agreed[l] ELSE output[l]]
      [] digest = wal /\ sealed -> seal
      [] digest = wal -> Begins
      [] digest = Unknown /\ On("unknown-is-beginning") -> Begins
      [] OTHER -> PlannedEnds

\* commit.lua, in latestOffset(start): positions of owned lanes move up to the true ends.
Commit ==
    LET after == [l \in Lane |-> IF l \in mine /\ (On("cumulative-commit") => TrueEnds[l] > position[l])
                                 THEN TrueEnds[l] ELSE position[l]]
        unread == ~knows /\ digest \notin {wal, Unknown} /\ after # position
        early == ~On("commit-before-plan") /\ stage \in {"reading", "sunk"} /\ \A l \in Read : output[l] # Open
    IN  /\ stage = "logged" \/ early
        /\ IF unread /\ On("unread-batch")
           THEN stage' = "refused" /\ UNCHANGED position
           ELSE /\ stage' = IF early THEN stage ELSE "idle"
                /\ position' = after
        /\ UNCHANGED <<mine, digest, sealed, seal, checkpoint, next, fresh, knows, tasks, sink, crashes, lost>>

\* The process dies, at any point, and starts again. Its last batch is replayed if the commit log lacks it, and committed
\* again otherwise. Redis may lose the member's entry meanwhile.
Crash ==
    /\ crashes < Crashes /\ stage # "refused"
    /\ crashes' = crashes + 1
    /\ stage' = IF wal = 0 THEN "idle" ELSE IF wal > log THEN "wal" ELSE "logged"
    /\ next' = NoPlan
    /\ fresh' = FALSE /\ knows' = FALSE
    /\ may' = {} /\ fixed' = AllOpen /\ asPlanned' = FALSE /\ agreed' = AllOpen /\ output' = AllOpen
    /\ lost' \in {lost, TRUE}
    /\ IF lost' /\ ~lost
       THEN digest' = Unknown /\ sealed' = FALSE /\ seal' = [l \in Lane |-> 0]
       ELSE UNCHANGED <<digest, sealed, seal>>
    /\ UNCHANGED <<position, mine, checkpoint, sink>>

\* Another member acquires a lane, after the lease of this one.
TakeOver(l) ==
    /\ l \in mine
    /\ mine' = mine \ {l}
    /\ UNCHANGED <<position, digest, sealed, seal, checkpoint, process, sink, crashes, lost>>

Next ==
    \/ Plan \/ WriteWal \/ Authorize \/ Seal \/ Sink \/ Skip \/ WriteLog \/ Commit \/ Crash
    \/ \E l \in Lane : Attempt(l) \/ Silent(l) \/ TakeOver(l)

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------------
(* Promises: they follow from the rules, so no switch is theirs. *)

Has(i, l, o) == sink[i].is = "ours" /\ sink[i].of[l].from <= o /\ o < sink[i].of[l].until
Arrived(l, o) == \E i \in 1..Batches : Has(i, l, o)

\* rule: nothing-lost. All offsets left of a position are in the sink.
NothingLost == \A l \in Lane : \A o \in 0..(position[l] - 1) : Arrived(l, o)

\* rule: key-order. The first delivery of an offset comes after those of all lower ones.
KeyOrder == \A l \in Lane, o \in 0..(End - 1) : Arrived(l, o) => \A lower \in 0..(o - 1) : Arrived(l, lower)

\* rule: bounded-repeats. If Redis loses nothing, the sink gets no record under two batch ids.
BoundedRepeats == ~lost => \A l \in Lane, o \in 0..(End - 1) : Cardinality({i \in 1..Batches : Has(i, l, o)}) <= 1

(* Rules: an invariant for each switch. [][P]_vars is an invariant of steps: x' is x after the step. *)

\* rule: seal-before-sink. What the sink has completed is sealed.
SealBeforeSink == stage = "sunk" /\ knows /\ digest = wal => sealed \/ Read = {}

\* rule: seal-as-planned. A task ends without a report only in a batch that has a seal already.
SealAsPlanned == (\E l \in Lane : output[l] # Open /\ agreed[l] = Open) => sealed

\* rule: first-end-wins. The sink gets the records up to the first end that a task reported.
FirstEndWins == \A l \in Lane : output[l] # Open /\ agreed[l] # Open => output[l] = agreed[l]

\* rule: replay-fixed. If the sink has the batch, a replay reads exactly to the same ends.
ReplayFixed == knows /\ wal > 0 /\ digest = wal =>
    (sink[wal].is = "ours" => \A l \in Read : output[l] \in {Open, sink[wal].of[l].until})

\* rule: omit-what-was-skipped. The member no longer owns a lane that its batch leaves out.
OmitWhatWasSkipped == stage \in {"reading", "sunk"} /\ knows => Slices \cap mine \subseteq may

\* rule: commit-before-plan. Only a batch that Spark has completed moves positions.
CommitBeforePlan == [][position' # position => log = wal]_vars

\* rule: unread-batch. Only a batch that the member has authorised moves positions, or one of which nobody knows that.
UnreadBatch == [][position' # position => digest \in {wal, Unknown}]_vars

\* rule: unknown-is-beginning. A batch whose ends nobody knows raises no position.
UnknownIsBeginning == [][digest = Unknown => \A l \in Lane : position'[l] <= position[l]]_vars

\* rule: cumulative-commit. No position goes back.
CumulativeCommit == [][\A l \in Lane : position'[l] >= position[l]]_vars

\* Lanes are alike, so states that differ only in their names are one.
Alike == Permutations(Lane)
======================================================================================
