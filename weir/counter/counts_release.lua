-- KEYS[1] the lease; ARGV[1] the token. Gives the lease back, if it is still the holder's.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
