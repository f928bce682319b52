-- Removes the messages of an inbox that were delivered.
-- KEYS: inbox, bytes of the inbox. ARGV: id after the last one delivered, their bytes.
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[1])
if redis.call('XLEN', KEYS[1]) == 0 then return redis.call('DEL', KEYS[2]) end
return redis.call('DECRBY', KEYS[2], ARGV[2])
