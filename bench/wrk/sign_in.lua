wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"email":"reader@example.com","password":"a long password"}'
