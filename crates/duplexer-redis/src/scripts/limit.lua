-- Counts one request by all of its quotas, or refuses it and counts it by none (GCRA). Returns 0 and 0, or the number of the key
-- with the longest wait, and the microseconds after which the same request is admitted.
-- KEYS: when each is idle, in microseconds. ARGV, for each key: microseconds between two requests, and those that a burst takes.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local after, refused_by, longest = {}, 0, 0
for i, key in ipairs(KEYS) do
  local idle = tonumber(redis.call('GET', key) or '0')
  after[i] = math.max(idle, now) + tonumber(ARGV[2 * i - 1])
  local excess = after[i] - now - tonumber(ARGV[2 * i])
  if excess > longest then refused_by, longest = i, excess end
end
if refused_by > 0 then return {refused_by, math.ceil(longest)} end
for i, key in ipairs(KEYS) do
  redis.call('SET', key, string.format('%.3f', after[i]), 'PX', math.ceil((after[i] - now) / 1000))
end
return {0, 0}
