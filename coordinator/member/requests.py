"""The requests of a member: each name is a call of Kafka, Redis or the cost model, or a line to show.

A step names a request, `apply` makes the call, and `Seen` holds the answer. The docstring of the named
method describes the call; `kinds` describes the kinds of calls.
"""

from dataclasses import replace

from coordinator.assignment.assigning import computed
from coordinator.member.apply import World
from coordinator.member.kinds import call, function, member_call, notice, once, own_call, own_notice, redis_call, write
from coordinator.plan.cost.steering import Steering
from coordinator.redis.members import RedisMembers
from coordinator.redis.poison import RedisPoison
from coordinator.redis.policies import RedisPolicies
from coordinator.redis.positions import RedisPositions
from coordinator.redis.reports import RedisReports
from coordinator.values.log import Log as Kafka


def _kafka(world: World) -> Kafka:
    return world.log


def _members(world: World) -> RedisMembers:
    return world.store.members


def _policies(world: World) -> RedisPolicies:
    return world.store.policies


def _positions(world: World) -> RedisPositions:
    return world.store.positions


def _poison(world: World) -> RedisPoison:
    return world.store.poison


def _reports(world: World) -> RedisReports:
    return world.store.reports


def _guesses(world: World) -> Steering:
    return world.guesses


# -- Kafka
ReadTopics = call(World.topics)
ReadOtherTopics = call(World.other_topics)
ReadLeaderRacks = call(World.leader_racks)
ReadLogEnds = call(World.log_ends)
WatchLogs = call(World.watch)
ReadHighWatermarks = call(Kafka.high_watermarks_now, _kafka)
ReadEpochEnds = call(Kafka.ends_of_epochs, _kafka)
ReadLeftOfEpochs = call(World.left_of_epochs)
ResolveOffsets = call(Kafka.resolve, _kafka)
ReadFirstTimes = call(Kafka.first_times, _kafka)
ReadGroupOffsets = call(World.group_offsets)
ReadClusterPolicies = call(World.cluster_policies)
Mirror = write(call(World.mirror))
DeleteMirror = write(call(World.delete_mirror))

# -- Redis: members
CheckServer = redis_call(World.check_server)
Join = own_call(World.join)
Heartbeat = member_call(RedisMembers.heartbeat, _members)
ForgetTopics = member_call(RedisMembers.forget, _members)
LookAtGroup = member_call(RedisMembers.look, _members)
ReadSubscribers = redis_call(RedisMembers.subscribers, _members)
ReadMetadata = redis_call(World.metadata)
ReadAssignment = redis_call(RedisMembers.assignment, _members)
ReadPartitionCounts = redis_call(RedisMembers.partition_counts, _members)
ReadPartitionsSeen = redis_call(RedisMembers.partitions_seen, _members)
ReadPolicy = redis_call(RedisPolicies.policy, _policies)
CopyPolicies = write(redis_call(RedisPolicies.copy, _policies))
Assign = member_call(RedisMembers.assign, _members)
Release = member_call(RedisMembers.release, _members)
Finish = member_call(RedisMembers.finish, _members)
Leave = once(own_call(RedisMembers.leave, _members))

# -- Redis: positions
ReadStatus = redis_call(World.status)
CreatePositions = write(redis_call(World.create))
Acquire = member_call(World.acquire)
HandOut = member_call(RedisPositions.hand_out, _positions)
Authorize = member_call(RedisPositions.authorize, _positions)
Commit = member_call(RedisPositions.commit, _positions)
LastCommit = once(Commit)
Seal = replace(member_call(RedisPositions.seal, _positions), numbered=False)  # threads of tasks send it
ReadSeal = redis_call(RedisPositions.seal_of, _positions)
Claim = write(redis_call(World.claim))
Recreate = write(redis_call(RedisPositions.recreate, _positions))
Recover = own_call(World.recover)
ReadResetEpoch = redis_call(RedisPositions.reset_epoch, _positions)
ReadStable = redis_call(RedisPositions.stable, _positions)
ReadExtents = redis_call(RedisPositions.extents, _positions)
ReadPositions = redis_call(RedisPositions.positions, _positions)
ReadProgress = redis_call(RedisPositions.progress, _positions)
ReadGrowths = redis_call(RedisPositions.growths, _positions)
RecordGrowths = write(redis_call(RedisPositions.grow, _positions))
ReportEnds = own_call(World.report_ends)
ReadRedisTime = redis_call(RedisPositions.now_ms, _positions)

# -- Redis: poison
ReadWorking = redis_call(RedisPoison.at_work, _poison)
ReportWorking = member_call(RedisPoison.working, _poison)
StrikeMember = write(redis_call(RedisPoison.strike, _poison))
ReadStrikes = redis_call(RedisPoison.strikes, _poison)
Forgive = write(redis_call(RedisPoison.forgive, _poison))
ReadFailing = redis_call(RedisPoison.failing, _poison)
Resume = write(redis_call(RedisPoison.resume, _poison))
Abandon = member_call(RedisPoison.abandon, _poison)

# -- this process: an assignment by the user's assignor, which is called once, as it need not be pure; costs
Compute = function(computed)
Grant = call(Steering.grant, _guesses)
NextSpan = call(Steering.next_span, _guesses)
Pack = call(World.pack)
Learn = call(World.learn)
ReadEnds = call(World.ends)
ReadReach = call(World.reach)
OffsetsOfARecord = call(Steering.offsets_of_a_record, _guesses)
DescribeLanes = call(World.describe_lanes)

# -- notices
Event = own_notice(World.event)
ShowBatch = notice(RedisReports.batch, _reports)
ShowLanes = own_notice(RedisReports.lanes, _reports)
Notify = notice(World.notify)
LogLine = notice(World.log_line)
LogBatch = notice(World.log_batch)
