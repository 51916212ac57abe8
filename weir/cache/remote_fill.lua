-- KEYS[1] the value, KEYS[2] its lease; ARGV[1] the token, ARGV[2] the new value, ARGV[3] its TTL in ms.
-- 1: filled, and the lease is used up. 0: refused, the lease is void. The check and the fill are one step, so a value
-- that was read before a write can't come in after the write has dropped the key. When the server is full (OOM) the
-- lease is given back and the error told. A lease of another type is none, and an error; a value of another type is
-- replaced.
local holder = redis.pcall('GET', KEYS[2])
if type(holder) == 'table' then
  return holder
end
if holder ~= ARGV[1] then
  return 0
end
local done = redis.pcall('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
if done.err then
  return done
end
return 1
