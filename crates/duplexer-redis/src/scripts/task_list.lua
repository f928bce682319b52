-- Returns the names and documents of the tasks of an owner. ARGV: owner, task after which the list begins or '', number of tasks.
local from = ARGV[2] == '' and '[' .. ARGV[1] .. ':' or '(' .. ARGV[1] .. ':' .. ARGV[2]
local found = redis.call('ZRANGEBYLEX', OWNERS, from, '(' .. ARGV[1] .. ';', 'LIMIT', 0, ARGV[3])
local documents = {}
for _, member in ipairs(found) do add(documents, string.sub(member, #ARGV[1] + 2)) end
return documents
