-- KEYS[1] the lease; ARGV[1] a new token, ARGV[2] how long a lease lasts in ms.
-- 1: it is the asker's now. 0: another holds it. Asking again with the same token changes nothing. What is of another
-- type is an error, since it may never run out.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  return holder
end
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
