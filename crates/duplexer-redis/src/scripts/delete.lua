-- Deletes a session with its streams. Returns where its requests run, also when it is repeated.
-- KEYS: record, in flight, streams, deleted. ARGV: expiry of the mark, prefix of stream keys, standalone stream.
local placements = redis.call('HVALS', KEYS[2])
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('SET', KEYS[4], table.concat(placements, ','), 'PX', ARGV[1])
else
  for placement in string.gmatch(redis.call('GET', KEYS[4]) or '', '[^,]+') do
    placements[#placements + 1] = placement
  end
end
for _, stream in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  redis.call('DEL', ARGV[2] .. 'm:' .. stream, ARGV[2] .. 'e:' .. stream)
end
redis.call('DEL', ARGV[2] .. 'm:' .. ARGV[3], ARGV[2] .. 'e:' .. ARGV[3])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
return placements
