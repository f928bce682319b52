-- Appends a change to the log and wakes all runs. The log keeps at least the change before it, so that a run which has read
-- that one knows that it has missed nothing.
-- KEYS: log. ARGV: change, limit of entries, age in milliseconds, expiry, channel.
local before = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '=', math.max(tonumber(ARGV[2]), 2), '*', 'e', ARGV[1])
-- An id begins with the time of the store, in milliseconds.
local oldest = tonumber(string.match(id, '^%d+')) - tonumber(ARGV[3])
if before then oldest = math.min(oldest, tonumber(string.match(before[1], '^%d+'))) end
redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%d', math.max(oldest, 0)))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PUBLISH', ARGV[5], '')
return id
