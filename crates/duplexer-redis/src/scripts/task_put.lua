-- Replaces a task by its next revision. ARGV: as in `link`, and then '1' if another run takes the task over.
local old, new, now = read(ARGV[1]), arguments(), millis()
if not old then return 'gone' end
if old.later then return 'layout ' .. old.later end
if old.revision == new.revision and old.sum == new.sum then return 'stored' end
if old.revision + 1 ~= new.revision then return 'superseded' end
local deadline = redis.call('ZSCORE', DEADLINES, ARGV[1])
unlink(ARGV[1], old)
link(new, now, old.run)
if deadline and new.run == '-' and new.final ~= '1' then
  -- It was set when the work was handed over, by the clock of that node.
  redis.call('ZADD', DEADLINES, deadline, ARGV[1])
end
if ARGV[10] == '1' and old.run ~= '-' and old.run ~= new.run then
  redis.call('ZADD', LOST, 0, old.run .. ':' .. ARGV[1])
end
keep(now)
return 'stored'
