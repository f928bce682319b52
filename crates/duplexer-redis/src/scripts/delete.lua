-- Deletes a session with its streams. Returns where its requests run.
-- KEYS: record, in flight, streams, deleted. ARGV: expiry of the mark, prefix of stream keys, standalone stream.
local placements = redis.call('HVALS', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('SET', KEYS[4], '1', 'PX', ARGV[1]) end
for _, stream in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  redis.call('DEL', ARGV[2] .. 'm:' .. stream, ARGV[2] .. 'e:' .. stream)
end
redis.call('DEL', ARGV[2] .. 'm:' .. ARGV[3], ARGV[2] .. 'e:' .. ARGV[3])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return placements
