-- KEYS[1] the counts, KEYS[2] their lease; ARGV[1] the TTL in ms, the rest: fields and values by turns, `version` first.
-- 2: written. 1: as new or newer ones are there. 0: none are there, and none are made; a fill that may have read older
-- ones has no lease any more. Running it twice, or later than a newer one, changes nothing.
-- What is of another type, or damaged, goes: it is as good as none. So are counts that a full server (OOM) won't renew.
local there = redis.pcall('HGET', KEYS[1], 'version')
if type(there) == 'string' and #there <= 16 and string.match(there, '^%d+$') then
  if tonumber(there) >= tonumber(ARGV[3]) then
    return 1
  end
  redis.call('DEL', KEYS[2])
  local done = redis.pcall('HSET', KEYS[1], unpack(ARGV, 2))
  if type(done) == 'table' and done.err then
    redis.call('UNLINK', KEYS[1])
    return done
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  return 2
end
redis.call('UNLINK', KEYS[1], KEYS[2])
return 0
