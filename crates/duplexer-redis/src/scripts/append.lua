-- Appends a batch of events to a stream, or opens it.
-- KEYS: stream, events, in flight, streams, deleted.
-- ARGV: run, first number or '', token or '', oldest event that must stay or '', limit of events, limit of bytes,
--       limit of bytes of the session, expiry while open, expiry after the end, stream, request id that opens it or '',
--       prefix of stream keys, position of the changes or '', event, ... An event begins with the letter of its kind.
local EVENTS = 14
local state = redis.call('HMGET', KEYS[1], 'w', 'seq', 'first', 'bytes', 'end', 'rd', 'rid', 'tk', 'bus')
local added = #ARGV - EVENTS + 1
if not state[2] then
  if ARGV[11] == '' or redis.call('EXISTS', KEYS[5]) == 1 then return {'unknown'} end
  redis.call('HSET', KEYS[1], 'w', ARGV[1], 'rid', ARGV[11], 'seq', 0, 'first', 1, 'bytes', 0, 'rd', ARGV[1], 'rn', 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[8])
  local now = redis.call('TIME')
  redis.call('ZADD', KEYS[4], now[1] * 1000 + math.floor(now[2] / 1000), ARGV[10])
  redis.call('PEXPIRE', KEYS[4], ARGV[8])
  if added == 0 then return {'stored', 0, ARGV[1]} end
  state = {ARGV[1], '0', '1', '0', false, ARGV[1], ARGV[11], false, false}
end
local seq, first, bytes = tonumber(state[2]), tonumber(state[3]), tonumber(state[4])
local from = tonumber(ARGV[2])
if from then
  if state[1] ~= ARGV[1] then return {'closed'} end
  local skipped = math.min(math.max(seq - from + 1, 0), added)
  if skipped == added then return {'stored', from + added - 1, state[6] or ''} end
  if state[5] then return {'closed'} end
  EVENTS, added, from = EVENTS + skipped, added - skipped, from + skipped
  if from > seq + 1 then
    -- The store has lost the end of the stream: the list begins again at the number of the writer.
    redis.call('DEL', KEYS[2])
    seq, first, bytes = from - 1, from, 0
  end
else
  -- Several writers: a repeated batch is recognised by its token.
  for token, last in string.gmatch(state[8] or '', '(%x+)=(%d+)') do
    if token == ARGV[3] then return {'stored', tonumber(last), state[6] or ''} end
  end
  -- Another node has written these changes. Positions have a fixed width.
  if ARGV[13] ~= '' and state[9] and ARGV[13] <= state[9] then return {'stored', seq, state[6] or ''} end
end
local count, notifications = seq - first + 1 + added, false
local before = bytes
for i = EVENTS, #ARGV do
  bytes = bytes + #ARGV[i]
  notifications = notifications or string.sub(ARGV[i], 1, 1) == 'n'
end
local max_count, max_bytes, unanswered = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[4])
if count > max_count or bytes > max_bytes then
  local evicted = 0
  for _, event in ipairs(redis.call('LRANGE', KEYS[2], 0, 255)) do
    if (count <= max_count and bytes <= max_bytes) or (unanswered and first >= unanswered) then break end
    count, bytes, first, evicted = count - 1, bytes - #event, first + 1, evicted + 1
  end
  if (count > max_count or bytes > max_bytes) and unanswered and first >= unanswered and notifications then
    return {'full'}
  end
  if evicted > 0 then redis.call('LTRIM', KEYS[2], evicted, -1) end
end
seq = seq + added
local expiry, fields, listed = ARGV[8], {'seq', seq, 'first', first, 'bytes', bytes}, #ARGV
if string.sub(ARGV[#ARGV], 1, 1) == 'f' then
  -- The last event is a field of the stream: most streams have no other, and then no list.
  fields[7], fields[8], fields[9], fields[10] = 'end', '1', 'last', ARGV[#ARGV]
  expiry, listed = ARGV[9], #ARGV - 1
  redis.call('HDEL', KEYS[3], state[7])
end
if listed >= EVENTS then redis.call('RPUSH', KEYS[2], unpack(ARGV, EVENTS, listed)) end
if not from then
  local tokens = ARGV[3] .. '=' .. string.format('%d', seq) .. ' ' .. (state[8] or '')
  -- About twenty of the newest tokens: more batches than nodes repeat at the same time.
  fields[7], fields[8] = 'tk', string.sub(tokens, 1, 800)
  if ARGV[13] ~= '' then fields[9], fields[10] = 'bus', ARGV[13] end
end
redis.call('HSET', KEYS[1], unpack(fields))
redis.call('PEXPIRE', KEYS[1], expiry)
if listed == #ARGV or seq > first then redis.call('PEXPIRE', KEYS[2], expiry) end
if math.floor(bytes / 16384) > math.floor(before / 16384) then
  -- The session may exceed its limit: its oldest streams that have ended are deleted.
  local streams, total = redis.call('ZRANGE', KEYS[4], 0, -1), 0
  local sizes = {}
  for i, stream in ipairs(streams) do
    sizes[i] = redis.call('HMGET', ARGV[12] .. 'm:' .. stream, 'bytes', 'end')
    total = total + tonumber(sizes[i][1] or 0)
  end
  for i, stream in ipairs(streams) do
    if total <= tonumber(ARGV[7]) then break end
    if stream ~= ARGV[10] and (sizes[i][2] or not sizes[i][1]) then
      redis.call('DEL', ARGV[12] .. 'm:' .. stream, ARGV[12] .. 'e:' .. stream)
      redis.call('ZREM', KEYS[4], stream)
      total = total - tonumber(sizes[i][1] or 0)
    end
  end
end
return {'stored', seq, state[6] or ''}
