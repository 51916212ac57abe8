-- The access token comes after "--".
function init(args)
  wrk.headers["Authorization"] = "Bearer " .. args[1]
end
