"""The requests of a member: each name is a call of Kafka, Redis or the cost model, or a line to show.

A step names a request, `apply` makes the call, and `Seen` holds the answer. The docstring of the named
method describes the call; `kinds` describes the kinds of calls.
"""

from coordinator.assignment.assigning import computed
from coordinator.member.apply import World
from coordinator.member.kinds import call, function, member_call, notice, own_call, own_notice, redis_call
from coordinator.plan.cost.steering import Steering
from coordinator.redis.ports import Log as Kafka
from coordinator.redis.ports import Members, Poison, Positions, Reports

# -- Kafka
ReadTopics = call(World.topics)
ReadOtherTopics = call(World.other_topics)
ReadLeaderRacks = call(World.leader_racks)
ReadLogEnds = call(World.log_ends)
ReadHighWatermarks = call(Kafka.high_watermarks_now)
ReadEpochEnds = call(Kafka.ends_of_epochs)
ReadLeftOfEpochs = call(World.left_of_epochs)
ResolveOffsets = call(Kafka.resolve)
ReadFirstTimes = call(Kafka.first_times)
ReadGroupOffsets = call(World.group_offsets)
ReadClusterPolicies = call(World.cluster_policies)
Mirror = call(World.mirror)
DeleteMirror = call(World.delete_mirror)

# -- Redis: members
CheckServer = redis_call(World.check_server)
Join = own_call(World.join)
Heartbeat = member_call(Members.heartbeat)
ForgetTopics = member_call(Members.forget)
LookAtGroup = member_call(Members.look)
ReadSubscribers = redis_call(Members.subscribers)
ReadMetadata = redis_call(World.metadata)
ReadAssignment = redis_call(Members.assignment)
ReadPartitionCounts = redis_call(Members.partition_counts)
ReadPolicy = redis_call(Members.policy)
CopyPolicies = redis_call(Members.copy_policies)
Assign = member_call(Members.assign)
Release = member_call(Members.release)
Finish = member_call(Members.finish)
Leave = own_call(Members.leave)

# -- Redis: positions
ReadStatus = redis_call(World.status)
CreatePositions = redis_call(World.create)
Acquire = member_call(World.acquire)
HandOut = member_call(Positions.hand_out)
Authorize = member_call(Positions.authorize)
Commit = member_call(Positions.commit)
Seal = member_call(Positions.seal)
ReadSeal = redis_call(Positions.seal_of)
Claim = redis_call(World.claim)
Recreate = redis_call(Positions.recreate)
Recover = own_call(World.recover)
ReadResetEpoch = redis_call(Positions.reset_epoch)
ReadStable = redis_call(Positions.stable)
ReadExtents = redis_call(Positions.extents)
ReadPositions = redis_call(Positions.positions)
ReadProgress = redis_call(Positions.progress)
ReadGrowths = redis_call(Positions.growths)
RecordGrowths = redis_call(Positions.grow)
ReportEnds = redis_call(Positions.report_ends)
ReadRedisTime = redis_call(Positions.now_ms)

# -- Redis: poison
ReadWorking = redis_call(Poison.at_work)
ReportWorking = member_call(Poison.working)
StrikeMember = redis_call(Poison.strike)
ReadStrikes = redis_call(Poison.strikes)
Forgive = redis_call(Poison.forgive)
ReadFailing = redis_call(Poison.failing)
Resume = redis_call(Poison.resume)
Abandon = member_call(Poison.abandon)

# -- this process: an assignment by the user's assignor, which is called once, as it need not be pure; costs
Compute = function(computed)
Grant = call(Steering.grant)
NextSpan = call(Steering.next_span)
Pack = call(World.pack)
Learn = call(World.learn)
ReadEnds = call(World.ends)
ReadReach = call(World.reach)
OffsetsOfARecord = call(Steering.offsets_of_a_record)
DescribeLanes = call(World.describe_lanes)

# -- notices
Event = own_notice(World.event)
ShowBatch = notice(Reports.batch)
ShowLanes = own_notice(Reports.lanes)
Notify = notice(World.notify)
Log = notice(World.log_line)
LogBatch = notice(World.log_batch)
