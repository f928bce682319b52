-- Admits one message of a session: looks, compares, then changes.
-- KEYS: record, in flight, stream, streams.
-- ARGV: layout, principal, known revision, expiry, request id, placement, limit of requests, stream, run, limit of streams,
--       prefix of stream keys, time of the node in milliseconds. Request id and stream are empty where there is none. The time
--       only decides which stream is the oldest, so the clocks of nodes need not agree.
local record = redis.call('HMGET', KEYS[1], 'v', 'who', 'rev')
if not record[1] then return {'unknown'} end
if record[1] ~= ARGV[1] then return {'layout', record[1]} end
if record[2] ~= ARGV[2] then return {'unknown'} end
local request, stream, expiry = ARGV[5], ARGV[8], ARGV[4]
if request ~= '' then
  if redis.call('HSETNX', KEYS[2], request, ARGV[6]) == 1 then
    local in_flight = redis.call('HLEN', KEYS[2])
    if in_flight > tonumber(ARGV[7]) then
      redis.call('HDEL', KEYS[2], request)
      return {'too_many'}
    end
    if stream ~= '' then
      redis.call('HSET', KEYS[3], 'w', ARGV[9], 'rid', request, 'seq', 0, 'first', 1, 'bytes', 0, 'rd', ARGV[9], 'rn', 1)
      redis.call('PEXPIRE', KEYS[3], expiry)
      local limit = tonumber(ARGV[10])
      local excess = redis.call('ZADD', KEYS[4], ARGV[12], stream) == 1 and redis.call('ZCARD', KEYS[4]) - limit or 0
      if excess > 0 then
        -- Streams that have ended make room, the oldest first, several at once. Those in flight are bounded by the limit of
        -- requests. Which they are, the placements of the requests say, if they are few and all have one.
        local count = math.min(excess + math.floor(limit / 16), 16)
        local placed, open = in_flight <= 64, {}
        for _, placement in ipairs(placed and redis.call('HVALS', KEYS[2]) or {}) do
          local at = string.match(placement, ' (.+)$')
          if not at or at == '-' then placed = false else open[at] = true end
        end
        local ended, keys = {}, {}
        for _, old in ipairs(redis.call('ZRANGE', KEYS[4], 0, count - 1)) do
          local is_open = open[old]
          if not placed and not is_open then
            local state = redis.call('HMGET', ARGV[11] .. 'm:' .. old, 'seq', 'end')
            is_open = state[1] and not state[2]
          end
          if not is_open then
            ended[#ended + 1] = old
            keys[#keys + 1], keys[#keys + 2] = ARGV[11] .. 'm:' .. old, ARGV[11] .. 'e:' .. old
          end
        end
        if #ended > 0 then
          redis.call('DEL', unpack(keys))
          redis.call('ZREM', KEYS[4], unpack(ended))
        end
      end
      redis.call('PEXPIRE', KEYS[4], expiry)
    end
  elseif redis.call('HGET', KEYS[2], request) ~= ARGV[6] then
    return {'in_flight'}
  end
  redis.call('PEXPIRE', KEYS[2], expiry)
end
redis.call('PEXPIRE', KEYS[1], expiry)
if record[3] == ARGV[3] then return {'current'} end
return {'record', redis.call('HGETALL', KEYS[1])}
