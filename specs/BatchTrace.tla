---------------------------------- MODULE BatchTrace ----------------------------------
(*
Whether an application really did what Batch.tla allows: recorded schedules of the simulation, step by step.

A record is of one checkpoint, with all its lives. Each step names an action of Spark, of the sink or of a script, with
what Redis has afterwards. LeaseTrace.tla says how TLC replays it. All else in the group is "others": they take lanes, and
raise positions.

    model                 Plan, WriteWal, Authorize, Attempt ... Commit; lanes are lost for ever
    recorded schedules    acquire . . . plan: a lane may come back; several batches between two crashes
*)
EXTENDS Batch, Sequences, Recorded

VARIABLES
    trace,   \* its number in Traces
    cursor,  \* the number of its next step
    known,   \* of each lane: its position in the last answer
    done     \* of each lane: the offsets that arrived, here or through others

replay == <<vars, trace, cursor, known, done>>
now == Traces[trace][cursor]

Start ==
    /\ Init
    /\ trace \in 1..Len(Traces) /\ cursor = 1
    /\ (sink[1].is = "foreign") = Traces[trace][1].foreign
    /\ known = [l \in Lane |-> 0] /\ done = [l \in Lane |-> {}]

\* What Redis has after the step. A step names only what has changed.
Recorded(what, before) == IF what \in DOMAIN now THEN now[what] ELSE before
AsRecorded ==
    /\ position' = Recorded("position", position)
    /\ mine' = Recorded("mine", mine)
    /\ digest' = Recorded("digest", digest)
    /\ sealed' = Recorded("sealed", sealed)
    /\ seal' = Recorded("seal", seal)

Beside == <<checkpoint, process, sink, crashes, lost>>

\* The first life owns nothing yet. Each later one follows the end of the one before it.
Starts ==
    IF cursor = 1 THEN UNCHANGED <<position, digest, sealed, seal, Beside>> ELSE Crash /\ lost' = lost

\* Other members: they take lanes, and move positions of theirs, or assert what they read.
Others ==
    /\ mine' \subseteq mine
    /\ \A l \in Lane : position'[l] >= position[l]
    /\ UNCHANGED <<digest, sealed, seal, Beside>>

\* leave.lua: without an unconfirmed lane the member's entry goes.
Leave ==
    /\ mine' \subseteq mine
    /\ \/ UNCHANGED <<digest, sealed, seal>>
       \/ digest' = 0 /\ ~sealed' /\ mine' = {}
    /\ UNCHANGED <<position, Beside>>

\* Somebody deletes the member's entry, and its process is killed at once.
EntryLost ==
    /\ digest' = Unknown /\ ~sealed'
    /\ lost' = TRUE
    /\ agreed' = AllOpen /\ output' = AllOpen
    /\ UNCHANGED <<position, mine, checkpoint, stage, next, fresh, knows, may, fixed, asPlanned, sink, crashes>>

Acquire ==
    /\ stage = "idle" /\ mine \subseteq mine'
    /\ UNCHANGED <<position, digest, sealed, seal, Beside>>

\* A batch begins where the last answer showed its lanes (rule: fresh-positions).
PlanThese ==
    /\ \A l \in Lane : LET s == now.slices[l] IN s[1] = s[2] \/ (s[1] = known[l] /\ s[1] < s[2])
    /\ Plans([l \in Lane |-> [from |-> now.slices[l][1], until |-> now.slices[l][2]]])

NoTask == agreed = AllOpen /\ output = AllOpen

\* A plan without slices makes no batch in its process. So the process takes it for one of an earlier life.
AuthorizeNothing ==
    /\ digest' = wal \/ (digest = Unknown /\ UNCHANGED digest /\ ~sealed')
    /\ stage' = "reading" /\ knows' = TRUE
    /\ may' = mine /\ fixed' = AllOpen /\ asPlanned' = FALSE
    /\ UNCHANGED <<position, mine, checkpoint, next, fresh, agreed, output, sink, crashes, lost>>

\* authorize.lua. If the answer is lost, the process asks again: a replay then takes its own first seal for an earlier one.
AuthorizeThese ==
    IF stage = "wal" /\ Slices = {} THEN AuthorizeNothing ELSE
    /\ now.lanes \cap Slices = mine \cap Slices
    /\ IF stage = "wal" THEN Authorize ELSE
        /\ stage = "reading" /\ NoTask
        /\ fixed' = IF digest = wal /\ sealed /\ ~fresh THEN seal ELSE fixed
        /\ may' = mine /\ asPlanned' \in BOOLEAN
        /\ UNCHANGED <<redis, checkpoint, stage, next, fresh, knows, agreed, output, sink, crashes, lost>>
    /\ may' = mine
    /\ asPlanned' = (now.planned /\ fixed' = AllOpen)

\* abandon.lua: the member leaves out lanes that were struck, and frees them before it reads.
Abandon ==
    /\ stage = "reading" /\ NoTask
    /\ may' = may \ now.lanes /\ mine' = mine \ now.lanes
    /\ UNCHANGED <<position, digest, sealed, seal, checkpoint, stage, next, fresh, knows, fixed, asPlanned, agreed>>
    /\ UNCHANGED <<output, sink, crashes, lost>>

\* Spark has the tasks: how far each lane is read. A lane whose seal is at its beginning has no task.
Upper(l) == IF fixed[l] # Open THEN fixed[l] ELSE plan[l].until
Tasks ==
    LET without == {l \in Read : fixed[l] = plan[l].from}
        ended(ends) == [l \in Lane |-> IF l \in without THEN fixed[l] ELSE ends[l]]
    IN  /\ stage = "reading" /\ NoTask
        /\ \A l \in Lane : now.reads[l] = IF l \in Read \ without THEN Upper(l) ELSE 0
        /\ agreed' = ended(agreed) /\ output' = ended(output)
        /\ UNCHANGED <<redis, checkpoint, stage, next, fresh, knows, may, fixed, asPlanned, sink, crashes, lost>>

\* Where a seal of an earlier life fixes the end, a task need not report it.
SilentOne == IF fixed[now.lane] # Open THEN Attempt(now.lane) ELSE Silent(now.lane)

\* seal.lua. A batch that is sealed as planned has early ends added, each before its task ends. A call may come again.
SealThese ==
    IF sealed /\ UNCHANGED seal THEN UNCHANGED vars ELSE
    IF asPlanned
    THEN /\ stage = "reading" /\ sealed
         /\ \A l \in Lane : seal'[l] = seal[l] \/ (l \in Read /\ agreed[l] = Open /\ seal'[l] < seal[l])
         /\ UNCHANGED <<position, mine, digest, sealed, Beside>>
    ELSE Seal

SinkThese ==
    /\ \A l \in Read : now.ends[l] = output[l] \/ (fixed[l] = plan[l].from /\ now.ends[l] = 0)
    /\ Sink

\* A commit that comes again finds nothing to commit.
CommitThese ==
    IF stage = "idle" THEN UNCHANGED vars ELSE Commit /\ (now.unread <=> stage' = "refused")

\* claim.lua: the process asserts what Redis refused.
Claim ==
    /\ \A l \in Lane : position'[l] >= position[l]
    /\ UNCHANGED <<mine, digest, sealed, seal, Beside>>

Raised(l) == position[l]..(position'[l] - 1)
Step ==
    /\ cursor <= Len(Traces[trace])
    /\ cursor' = cursor + 1 /\ UNCHANGED trace
    /\ AsRecorded
    /\ known' = IF now.ev \in {"acquire", "commit"} THEN position' ELSE known
    /\ done' = CASE now.ev = "others" -> [l \in Lane |-> done[l] \cup Raised(l)]
                 [] now.ev = "sink" -> [l \in Lane |-> done[l] \cup
                        IF l \in Read THEN plan[l].from..(output[l] - 1) ELSE {}]
                 [] OTHER -> done
    /\ CASE now.ev = "starts" -> Starts
         [] now.ev = "others" -> Others
         [] now.ev = "leave" -> Leave
         [] now.ev = "entry lost" -> EntryLost
         [] now.ev = "acquire" -> Acquire
         [] now.ev = "plan" -> PlanThese
         [] now.ev = "offset log" -> WriteWal
         [] now.ev = "authorize" -> AuthorizeThese
         [] now.ev = "abandon" -> Abandon
         [] now.ev = "tasks" -> Tasks
         [] now.ev = "attempt" -> Attempt(now.lane) /\ output'[now.lane] = now.end
         [] now.ev = "silent" -> SilentOne
         [] now.ev = "seal" -> SealThese
         [] now.ev = "sink" -> SinkThese
         [] now.ev = "skips" -> Skip
         [] now.ev = "commit log" -> WriteLog
         [] now.ev = "commit" -> CommitThese
         [] now.ev = "claim" -> Claim

Replay == Step \/ (cursor > Len(Traces[trace]) /\ UNCHANGED replay)

\* rule: nothing-lost. All offsets left of a position arrived, here or through others.
NothingLostHere == \A l \in Lane : 0..(position[l] - 1) \subseteq done[l]
======================================================================================
