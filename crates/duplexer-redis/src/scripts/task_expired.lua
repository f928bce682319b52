-- Returns the names and documents of unfinished tasks whose lease or deadline has ended. ARGV: number of tasks.
local now, documents, most = millis(), {}, tonumber(ARGV[1])
for _, task in ipairs(redis.call('ZRANGEBYSCORE', DEADLINES, '-inf', now, 'LIMIT', 0, most)) do
  add(documents, task)
end
for _, run in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, 64)) do
  for _, member in ipairs(tasks_of(run, most - #documents / 2)) do add(documents, string.sub(member, #run + 2)) end
end
return documents
