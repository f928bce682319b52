-- Stores a new session.
-- KEYS: record, deleted. ARGV: expiry, digest of the record, field, value, ...
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local made = redis.call('HGET', KEYS[1], 'made')
if made then return made == ARGV[2] and 1 or 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'made', ARGV[2], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
