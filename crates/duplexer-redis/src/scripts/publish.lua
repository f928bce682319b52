-- Appends a change to the log and wakes all runs. The log is never empty after that.
-- KEYS: log. ARGV: change, limit of entries, age in milliseconds, expiry, channel.
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '=', ARGV[2], '*', 'e', ARGV[1])
local now = redis.call('TIME')
redis.call('XTRIM', KEYS[1], 'MINID', '~', string.format('%d', tonumber(now[1]) * 1000 - tonumber(ARGV[3])))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PUBLISH', ARGV[5], '')
return id
