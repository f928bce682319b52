-- Replaces a record if the current one satisfies the condition.
-- KEYS: record. ARGV: condition, value that it compares with, new value, expiry. An expiry of '' removes the record.
local current = redis.call('GET', KEYS[1])
local condition = ARGV[1]
local allowed = condition == 'always' or (condition == 'present' and current) or (condition == 'absent' and not current)
  or (condition == 'is' and current == ARGV[2])
if not allowed then return {0, current} end
if ARGV[4] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
end
return {1, current}
