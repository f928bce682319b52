-- Changes fields of a session that exists. Returns its revision.
-- KEYS: record. ARGV: layout, expiry, field, value, ... A value of '' removes the field.
local layout = redis.call('HGET', KEYS[1], 'v')
if not layout then return {'unknown'} end
if layout ~= ARGV[1] then return {'layout', layout} end
local changed = false
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for i = 3, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  local current = redis.call('HGET', KEYS[1], field)
  if value == '' then
    if current then redis.call('HDEL', KEYS[1], field); changed = true end
  elseif current ~= value then
    redis.call('HSET', KEYS[1], field, value)
    changed = true
  end
end
if changed then return {'updated', redis.call('HINCRBY', KEYS[1], 'rev', 1)} end
return {'updated', tonumber(redis.call('HGET', KEYS[1], 'rev'))}
