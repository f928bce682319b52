-- Removes a request from those in flight, if it has this placement.
-- KEYS: in flight. ARGV: request id, placement.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then return redis.call('HDEL', KEYS[1], ARGV[1]) end
return 0
