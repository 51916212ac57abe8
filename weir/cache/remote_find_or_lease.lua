-- KEYS[1] the value, KEYS[2] its lease; ARGV[1] a new token, ARGV[2] how long a lease lasts in ms.
-- {1, value, ms left}: it is there. {2}: it isn't, and the lease is the asker's now. {3, ms left}: it isn't, and
-- another holds the lease. Asking again with the same token changes nothing.
-- A text that is none of ours is as good as nothing: a fill replaces it. What is of another type is an error.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return value
end
if value and (string.sub(value, 1, 1) == 'V' or value == 'N') then
  return {1, value, redis.call('PTTL', KEYS[1])}
end
local holder = redis.pcall('GET', KEYS[2])
if type(holder) == 'table' then
  return holder
end
if holder and holder ~= ARGV[1] then
  return {3, redis.call('PTTL', KEYS[2])}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {2}
