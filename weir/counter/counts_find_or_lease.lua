-- KEYS[1] the counts, KEYS[2] their lease; ARGV[1] a new token, ARGV[2] how long a lease lasts in ms, the rest: the
-- fields, `version` first.
-- {1, values, ms left}: they are there. {2}: they aren't, and the lease is the asker's now. {3, ms left}: they aren't,
-- and another holds the lease. Asking again with the same token changes nothing.
-- Counts that lack a field, or have one that is no number of at most 18 digits, are as good as none. What is of another type is an error.
local values = redis.pcall('HMGET', KEYS[1], unpack(ARGV, 3))
if values.err then
  return values
end
local whole = true
for i = 1, #ARGV - 2 do
  whole = whole and values[i] and #values[i] <= 18 and string.match(values[i], '^%-?%d+$')
end
if whole then
  return {1, values, redis.call('PTTL', KEYS[1])}
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
