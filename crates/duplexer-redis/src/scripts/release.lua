-- Removes a request of one run from those in flight.
-- KEYS: in flight. ARGV: request id, run.
local placement = redis.call('HGET', KEYS[1], ARGV[1])
if placement and string.sub(placement, 1, #ARGV[2]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
