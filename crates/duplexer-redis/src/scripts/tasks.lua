-- The beginning of every script of tasks.
-- KEYS: documents, states, owners, unfinished tasks of each owner, tasks of each run, leases, lost tasks, ends of
--       retention, deadlines, bytes.
-- A state is: layout, revision, '1' if it is final, run or '-', digest of the owner, size, digest of the record.
-- Times are those of the store, whose clock alone counts.
local DOCS, STATES, OWNERS, LIVE, RUNS, LEASES, LOST, ENDS, DEADLINES, BYTES = unpack(KEYS)
local LAYOUT = '1'
-- Time for which everything is kept after the last end that is known, in case that no node is left to delete it.
local MARGIN = 86400000

local function millis()
  local now = redis.call('TIME')
  return now[1] * 1000 + math.floor(now[2] / 1000)
end

local function read(task)
  local text = redis.call('HGET', STATES, task)
  if not text then return nil end
  local layout, rest = string.match(text, '^(%S+) (.*)$')
  if layout ~= LAYOUT then return {later = layout or '?'} end
  local revision, final, run, owner, size, sum = string.match(rest, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  return {revision = tonumber(revision), final = final, run = run, owner = owner, size = tonumber(size), sum = sum}
end

-- Removes a task from everything that finds it.
local function unlink(task, old)
  if old.final ~= '1' and redis.call('HINCRBY', LIVE, old.owner, -1) < 1 then redis.call('HDEL', LIVE, old.owner) end
  if old.run ~= '-' then redis.call('ZREM', RUNS, old.run .. ':' .. task) end
  redis.call('ZREM', OWNERS, old.owner .. ':' .. task)
  redis.call('ZREM', ENDS, task)
  redis.call('ZREM', DEADLINES, task)
  redis.call('DECRBY', BYTES, old.size)
  redis.call('HDEL', DOCS, task)
  redis.call('HDEL', STATES, task)
end

-- Stores a task. ARGV: task, revision, final, run, owner, size, digest, document, milliseconds until its time: the end of its
-- retention, of a new lease, or the deadline.
local function link(new, now, earlier_run)
  local time = now + tonumber(ARGV[9])
  redis.call('HSET', DOCS, ARGV[1], ARGV[8])
  redis.call('HSET', STATES, ARGV[1], table.concat({LAYOUT, unpack(ARGV, 2, 7)}, ' '))
  redis.call('ZADD', OWNERS, 0, new.owner .. ':' .. ARGV[1])
  redis.call('INCRBY', BYTES, new.size)
  if new.final ~= '1' then redis.call('HINCRBY', LIVE, new.owner, 1) end
  if new.final == '1' then
    redis.call('ZADD', ENDS, time, ARGV[1])
  elseif new.run == '-' then
    redis.call('ZADD', DEADLINES, time, ARGV[1])
  else
    redis.call('ZADD', RUNS, 0, new.run .. ':' .. ARGV[1])
    if new.run ~= earlier_run then redis.call('ZADD', LEASES, 'GT', time, new.run) end
  end
end

local function arguments()
  return {revision = tonumber(ARGV[2]), final = ARGV[3], run = ARGV[4], owner = ARGV[5], size = tonumber(ARGV[6]),
    sum = ARGV[7]}
end

-- Renews the expiry of all keys: everything ends, also after all nodes have.
local function keep(now)
  local last = now
  for _, key in ipairs({ENDS, DEADLINES, LEASES}) do
    last = math.max(last, tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2] or 0))
  end
  local expiry = string.format('%d', last - now + MARGIN)
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, expiry) end
end

local function tasks_of(run, most)
  return redis.call('ZRANGEBYLEX', RUNS, '[' .. run .. ':', '(' .. run .. ';', 'LIMIT', 0, most)
end

-- Adds the name and the document of a task to a list. Returns whether there is such a task.
local function add(list, task)
  local document = redis.call('HGET', DOCS, task)
  if not document then return false end
  list[#list + 1] = task
  list[#list + 1] = document
  return true
end
