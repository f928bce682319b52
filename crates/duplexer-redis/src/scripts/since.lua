-- Returns the changes after a position. If the log does not reach back: the last position, and the time of the store.
-- KEYS: log. ARGV: position, number of entries.
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if ARGV[1] ~= '0-0' and #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) == 0 then
  return {'missed', last and last[1] or '0-0', redis.call('TIME')[1]}
end
return {'entries', redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])}
