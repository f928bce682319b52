-- Prolongs the leases of a run. Returns the names and documents of the tasks that it has lost.
-- ARGV: run, milliseconds, lost tasks that the run knows of, ...
local run = ARGV[1]
if redis.call('ZSCORE', LEASES, run) then redis.call('ZADD', LEASES, 'GT', millis() + tonumber(ARGV[2]), run) end
for i = 3, #ARGV do redis.call('ZREM', LOST, run .. ':' .. ARGV[i]) end
local lost = {}
for _, member in ipairs(redis.call('ZRANGEBYLEX', LOST, '[' .. run .. ':', '(' .. run .. ';', 'LIMIT', 0, 256)) do
  local task = string.sub(member, #run + 2)
  if not add(lost, task) then redis.call('ZREM', LOST, member) end
end
return lost
