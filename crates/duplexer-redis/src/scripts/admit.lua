-- Admits one message of a session: looks, compares, then changes.
-- KEYS: record, in flight, stream, streams.
-- ARGV: layout, principal, known revision, expiry, request id, placement, limit of requests, stream, run, limit of streams,
--       prefix of stream keys, time of the node in seconds. Request id and stream are empty where there is none. The time
--       only decides which stream is the oldest, so the clocks of nodes need not agree.
local record = redis.call('HMGET', KEYS[1], 'v', 'who', 'rev')
if not record[1] then return {'unknown'} end
if record[1] ~= ARGV[1] then return {'layout', record[1]} end
if record[2] ~= ARGV[2] then return {'unknown'} end
local request, stream, expiry = ARGV[5], ARGV[8], ARGV[4]
if request ~= '' then
  if redis.call('HSETNX', KEYS[2], request, ARGV[6]) == 1 then
    if redis.call('HLEN', KEYS[2]) > tonumber(ARGV[7]) then
      redis.call('HDEL', KEYS[2], request)
      return {'too_many'}
    end
    if stream ~= '' then
      redis.call('HSET', KEYS[3], 'w', ARGV[9], 'rid', request, 'seq', 0, 'first', 1, 'bytes', 0, 'rd', ARGV[9], 'rn', 1)
      redis.call('PEXPIRE', KEYS[3], expiry)
      if redis.call('ZADD', KEYS[4], ARGV[12], stream) == 1
        and redis.call('ZCARD', KEYS[4]) > tonumber(ARGV[10]) then
        -- Streams that have ended make room, the oldest first. Those in flight are bounded by the limit of requests.
        for _, old in ipairs(redis.call('ZRANGE', KEYS[4], 0, 7)) do
          local state = redis.call('HMGET', ARGV[11] .. 'm:' .. old, 'seq', 'end')
          if not state[1] or state[2] then
            redis.call('DEL', ARGV[11] .. 'm:' .. old, ARGV[11] .. 'e:' .. old)
            redis.call('ZREM', KEYS[4], old)
          end
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
