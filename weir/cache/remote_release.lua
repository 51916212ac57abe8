-- KEYS[1] the lease; ARGV[1] the token. Gives the lease back, if it is still the holder's: those who wait needn't
-- wait for its end. What is of another type is an error, and stays.
local holder = redis.pcall('GET', KEYS[1])
if type(holder) == 'table' then
  return holder
end
if holder == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
