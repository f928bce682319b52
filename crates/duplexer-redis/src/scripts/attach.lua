-- Makes a run the reader of a stream.
-- KEYS: stream, events, record, streams.
-- ARGV: run, number that the client has received or '', reader that is replaced ('*' for any, '' for none), expiry,
--       stream if it is opened here or '', token.
local state = redis.call('HMGET', KEYS[1], 'seq', 'rd', 'rn', 'seen', 'end', 'bus', 'rt')
if not state[1] then
  if ARGV[5] == '' or redis.call('EXISTS', KEYS[3]) == 0 then return {'unknown'} end
  redis.call('HSET', KEYS[1], 'seq', 0, 'first', 1, 'bytes', 0)
  local now = redis.call('TIME')
  redis.call('ZADD', KEYS[4], now[1] * 1000 + math.floor(now[2] / 1000), ARGV[5])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
  state = {'0', false, false, false, false, false, false}
end
local reader = state[2]
-- A repetition: the token of the reader, and the number after which it began.
local token, began = string.match(state[7] or '', '^(%S+) (%d+)$')
if reader and token == ARGV[6] then return {'reader', tonumber(state[3]), tonumber(began), '', state[6] or ''} end
if reader and ARGV[3] ~= '*' and reader ~= ARGV[3] then return {'held', reader} end
local seq, after = tonumber(state[1]), tonumber(ARGV[2])
if after and after > seq then
  -- The store has lost the end of the stream: numbers go on after those that the client has seen.
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'seq', after, 'first', after + 1, 'bytes', 0)
end
after = after or tonumber(state[4] or seq)
local number = tonumber(state[3] or 0) + 1
redis.call('HSET', KEYS[1], 'rd', ARGV[1], 'rn', number, 'rt', ARGV[6] .. ' ' .. string.format('%d', after))
if not state[5] then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return {'reader', number, after, reader or '', state[6] or ''}
