-- Deletes the streams of a session.
-- KEYS: streams. ARGV: prefix of stream keys, standalone stream.
for _, stream in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  redis.call('DEL', ARGV[1] .. 'm:' .. stream, ARGV[1] .. 'e:' .. stream)
end
return redis.call('DEL', ARGV[1] .. 'm:' .. ARGV[2], ARGV[1] .. 'e:' .. ARGV[2], KEYS[1])
