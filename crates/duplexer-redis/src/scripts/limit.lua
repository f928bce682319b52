-- Counts one request of a key, or refuses it (GCRA). Returns 0, or the microseconds after which the next request is admitted.
-- KEYS: when the key is idle, in microseconds. ARGV: microseconds between two requests, and those that a burst takes.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local idle = tonumber(redis.call('GET', KEYS[1]) or '0')
local after = math.max(idle, now) + tonumber(ARGV[1])
local excess = after - now - tonumber(ARGV[2])
if excess > 0 then return math.ceil(excess) end
redis.call('SET', KEYS[1], string.format('%.3f', after), 'PX', math.ceil((after - now) / 1000))
return 0
