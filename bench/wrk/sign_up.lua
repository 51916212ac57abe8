-- A new person with each request.
local number = 0
request = function()
  number = number + 1
  local body = string.format('{"email":"wrk%d-%d@example.com","password":"a long password"}', number, os.time())
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, body)
end
