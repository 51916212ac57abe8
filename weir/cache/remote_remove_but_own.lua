-- KEYS[1] the value, KEYS[2] its lease; ARGV[1] the writer's own token.
-- Drops the value and voids the lease, unless it is the writer's own and was never taken over: then 1, else 0. Both go
-- whatever their type is: nothing old may stay.
redis.call('UNLINK', KEYS[1])
if redis.pcall('GET', KEYS[2]) == ARGV[1] then
  return 1
end
redis.call('DEL', KEYS[2])
return 0
