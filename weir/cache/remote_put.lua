-- KEYS[1] the value, KEYS[2] its lease; ARGV[1] the new value, ARGV[2] its TTL in ms.
-- Replaces whatever is there, of another type too, and voids the lease: what its holder has read may be older. A server
-- that is full (OOM) keeps no old value.
local done = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if done.err then
  redis.call('UNLINK', KEYS[1], KEYS[2])
  return done
end
redis.call('DEL', KEYS[2])
return 1
