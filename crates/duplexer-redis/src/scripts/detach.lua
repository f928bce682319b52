-- Removes a reader, unless it was replaced.
-- KEYS: stream, events. ARGV: number of the reader, number of the last event received, expiry of a stream that was read.
local state = redis.call('HMGET', KEYS[1], 'rn', 'seq', 'end', 'first')
if state[1] ~= ARGV[1] then return 0 end
if state[3] and tonumber(ARGV[2]) >= tonumber(state[2]) then
  -- It was read to its end, and no one else will read it: only its expiry changes.
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  if tonumber(state[2]) > tonumber(state[4]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
  return 1
end
redis.call('HDEL', KEYS[1], 'rd')
redis.call('HSET', KEYS[1], 'seen', ARGV[2])
return 1
