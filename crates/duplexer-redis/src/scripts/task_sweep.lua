-- Deletes tasks that are past their retention, and leases that have ended without tasks. Returns the milliseconds until
-- something is due, or -1. ARGV: number of tasks.
local now = millis()
for _, task in ipairs(redis.call('ZRANGEBYSCORE', ENDS, '-inf', now, 'LIMIT', 0, ARGV[1])) do
  local old = read(task)
  if not old then
    redis.call('ZREM', ENDS, task)
  elseif not old.later then
    unlink(task, old)
  end
end
for _, run in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, 64)) do
  if #tasks_of(run, 1) == 0 then
    redis.call('ZREM', LEASES, run)
    redis.call('ZREMRANGEBYLEX', LOST, '[' .. run .. ':', '(' .. run .. ';')
  end
end
keep(now)
local due
local function at(time)
  if time then due = math.min(due or tonumber(time), tonumber(time)) end
end
at(redis.call('ZRANGE', ENDS, 0, 0, 'WITHSCORES')[2])
at(redis.call('ZRANGE', DEADLINES, 0, 0, 'WITHSCORES')[2])
local leases = redis.call('ZRANGE', LEASES, 0, 63, 'WITHSCORES')
for i = 1, #leases, 2 do
  if #tasks_of(leases[i], 1) == 1 then
    at(leases[i + 1])
    break
  end
end
return due and math.max(due - now, 0) or -1
