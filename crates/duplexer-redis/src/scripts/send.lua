-- Puts a message into the inbox of a run that has a lease, and wakes the run.
-- KEYS: lease, inbox, bytes of the inbox. ARGV: message, limit of messages, limit of bytes, expiry, channel.
if redis.call('EXISTS', KEYS[1]) == 0 then return 'gone' end
if redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[2])
  or tonumber(redis.call('GET', KEYS[3]) or 0) + #ARGV[1] > tonumber(ARGV[3]) then return 'full' end
redis.call('XADD', KEYS[2], '*', 'm', ARGV[1])
redis.call('INCRBY', KEYS[3], #ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
redis.call('PUBLISH', ARGV[5], 'i')
return 'queued'
