"""A hot article of about 1 KiB: Weir, counting every read, against nginx with a static file, gin, and raw epoll."""
import json
import subprocess
import time

from common import BUILD, ROOT, Weir, folder, free_port, get, post, row, running, side_by_side, wrk

ROUNDS = 5
SECONDS = 3


def nginx_configuration(where, port):
    return f"""
worker_processes 1; daemon off; pid {where}/nginx.pid; error_log {where}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000; open_file_cache max=100;
  client_body_temp_path {where}/t1; proxy_temp_path {where}/t2; fastcgi_temp_path {where}/t3; uwsgi_temp_path {where}/t4; scgi_temp_path {where}/t5;
  server {{ listen 127.0.0.1:{port}; location / {{ root {where}/static; default_type application/json; }} }}
}}
"""


def publish(weir):
    token = weir.sign_up()
    made = post(weir.url + "/v1/articles", {"title": "A hot article", "content": "Words of the river. " * 38}, token)["id"]
    post(f"{weir.url}/v1/articles/{made}/publish", {}, token)
    return made


def gin_peer(where):
    target = where / "gin"
    subprocess.run(["go", "build", "-o", str(target), "."], cwd=ROOT / "bench" / "peers" / "gin", check=True)
    return target


def measure():
    with folder() as where, Weir(where / "data") as weir:
        made = publish(weir)
        path = f"/v1/articles/{made}"
        body = get(weir.url + path)
        (where / "static/v1/articles").mkdir(parents=True)
        (where / "static" / path[1:]).write_bytes(body)
        nginx, epoll, gin = free_port(), free_port(), free_port()
        (where / "nginx.conf").write_text(nginx_configuration(where, nginx))
        gin_program = gin_peer(where)
        def load(port):
            return lambda: wrk(f"http://127.0.0.1:{port}{path}", SECONDS)["rate"]

        with running(["nginx", "-p", where, "-c", where / "nginx.conf"], nginx), \
                running([BUILD / "bench" / "epoll_peer", epoll, where / "static" / path[1:]], epoll), \
                running([gin_program, f"127.0.0.1:{gin}", where / "static" / path[1:]], gin, env={"GOMAXPROCS": "1", "PATH": "/usr/bin"}):
            measured = side_by_side(ROUNDS, lambda: wrk(weir.url + path, SECONDS)["rate"], weir.settle,
                                    nginx=load(nginx), epoll=load(epoll), gin=load(gin))

        def told(name, peer, bar=None):
            ours, theirs, ratio = measured[name]
            return row("hot article read", "requests/s", ours, peer, theirs, ratio, bar)

        rows = [told("nginx", "nginx static", 0.9), told("epoll", "raw epoll (the limit)"), told("gin", "gin", 2.0)]
        return [*rows, counted(weir, made)]


def counted(weir, made):
    """Every answered read is in the counts: the server's own tally of answers against the article's count."""
    weir.settle()
    answered = sum(v for k, v in weir.metrics().items() if k.startswith("weir_http_request_duration_seconds_count{")
                   and 'route="/v1/articles/{id}"' in k and 'method="GET"' in k and ('status="200"' in k))
    time.sleep(1)
    count = json.loads(get(f"{weir.url}/v1/interactions/article/{made}"))["read_count"]
    return {**row("reads counted of reads answered", "reads", count, "answered", answered, count / answered, 1.0), "ok": count == answered}
