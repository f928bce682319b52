-- Returns a page of events after a number.
-- KEYS: stream, events. ARGV: number, length of the page.
local state = redis.call('HMGET', KEYS[1], 'seq', 'first', 'end', 'w', 'rid', 'rd', 'rn', 'last')
if not state[1] then return false end
local first = tonumber(state[2])
local from = math.max(tonumber(ARGV[1]) + 1, first)
local events = redis.call('LRANGE', KEYS[2], from - first, from - first + tonumber(ARGV[2]) - 1)
if state[8] and #events < tonumber(ARGV[2]) and from + #events == tonumber(state[1]) then
  events[#events + 1] = state[8]
end
local ended = state[3] and from + #events > tonumber(state[1])
return {from, ended and 1 or 0, state[4] or '', state[5] or '', state[6] or '', tonumber(state[7] or 0), events}
