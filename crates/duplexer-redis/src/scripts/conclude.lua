-- Ends the stream of a writer whose run is gone.
-- KEYS: stream, events, in flight. ARGV: run of the writer, last event, expiry.
local state = redis.call('HMGET', KEYS[1], 'w', 'seq', 'end', 'rid', 'rd', 'bytes')
if not state[2] then return {'unknown'} end
if state[3] or state[1] ~= ARGV[1] then return {'already'} end
redis.call('HSET', KEYS[1], 'seq', tonumber(state[2]) + 1, 'end', '1', 'w', '', 'bytes', tonumber(state[6]) + #ARGV[2],
  'last', ARGV[2])
redis.call('HDEL', KEYS[3], state[4])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'ended', state[5] or ''}
