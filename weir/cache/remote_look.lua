-- KEYS: names. For each what is there (nothing; an error when it isn't a text) and its TTL in ms, all of one moment.
local seen = {}
for i, name in ipairs(KEYS) do
  seen[2 * i - 1] = redis.pcall('GET', name)
  seen[2 * i] = redis.call('PTTL', name)
end
return seen
