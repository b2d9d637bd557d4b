-- Leader epochs of logs, as `coordinator/progress/leader_epochs.py` defines them (rule: leader-epoch-facts).
-- Uses damage, prelude
local LEADER_EPOCH_MAX = '2147483647'  -- as Kafka's protocol holds it; values/identifiers.py has it too

-- "<leader epoch>@<log end> reset=<reset epoch> topic=<topic id>" -> leader epoch, reset epoch, topic id, log end; nil for another text
local function leader_epoch_of(text)
  local epoch, log_end, reset, id = string.match(text or '', '^(%d+)@(%d+) reset=(%d+) topic=(%S+)$')
  local sound = epoch and number(epoch) and not less(LEADER_EPOCH_MAX, epoch)
  if sound then return epoch, reset, id, log_end end
  return nil
end

-- Whether the stored text has a newer leader epoch than `epoch`, of the same reset epoch and topic.
local function has_newer_leader_epoch(stored, epoch, reset, id)
  local known, of_reset, of_topic = leader_epoch_of(stored)
  return known and of_reset == reset and of_topic == id and less(epoch, known)
end

-- Whether `text` may replace the stored text: a member may have looked at the log before the last election.
local function replaces_leader_epoch(stored, text)
  local epoch, reset, id = leader_epoch_of(text)
  return not (epoch and has_newer_leader_epoch(stored, epoch, reset, id))
end

-- The same for a text that states no cut: an end stays a fact, also if a member sees a lower one. It may read only
-- committed transactions.
local function says_more(stored, text)
  local epoch, reset, id, log_end = leader_epoch_of(text)
  local known, of_reset, of_topic, known_end = leader_epoch_of(stored)
  local same = epoch and known == epoch and of_reset == reset and of_topic == id
  return replaces_leader_epoch(stored, text) and not (same and less(log_end, known_end))
end
