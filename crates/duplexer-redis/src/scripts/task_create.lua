-- Stores a new task. ARGV: as in `link`, and then the limits of unfinished tasks of one owner, of tasks, and of bytes.
local old, new, now = read(ARGV[1]), arguments(), millis()
if old then return old.sum == new.sum and 'stored' or 'too_many' end
if tonumber(redis.call('HGET', LIVE, new.owner) or 0) >= tonumber(ARGV[10])
  or redis.call('HLEN', STATES) >= tonumber(ARGV[11])
  or tonumber(redis.call('GET', BYTES) or 0) + new.size > tonumber(ARGV[12]) then return 'too_many' end
link(new, now)
keep(now)
return 'stored'
