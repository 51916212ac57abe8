-- KEYS[1] the counts, KEYS[2] their lease; ARGV[1] the token, ARGV[2] the TTL in ms, the rest: fields and values by
-- turns, `version` first.
-- 1: filled, and the lease is used up. 0: refused: the lease is void, since an update came between, or newer counts are
-- there. A lease of another type is none, and an error; counts of another type are replaced. When the server is full
-- (OOM) the lease is given back and the error told.
local holder = redis.pcall('GET', KEYS[2])
if type(holder) == 'table' then
  return holder
end
if holder ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[2])
local there = redis.pcall('HGET', KEYS[1], 'version')
if type(there) == 'string' and #there <= 16 and string.match(there, '^%d+$') and tonumber(there) > tonumber(ARGV[4]) then
  return 0
end
redis.call('UNLINK', KEYS[1])
local done = redis.pcall('HSET', KEYS[1], unpack(ARGV, 3))
if type(done) == 'table' and done.err then
  return done
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
