-- Renews the expiry of a session and of the streams of its requests in flight.
-- KEYS: record, in flight, streams. ARGV: expiry, prefix of stream keys.
if redis.call('PEXPIRE', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[1])
for _, placement in ipairs(redis.call('HVALS', KEYS[2])) do
  local stream = string.sub(placement, 18)
  redis.call('PEXPIRE', ARGV[2] .. 'm:' .. stream, ARGV[1])
  redis.call('PEXPIRE', ARGV[2] .. 'e:' .. stream, ARGV[1])
end
return 1
