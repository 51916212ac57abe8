"""wrk over sign-up, sign-in, profile and article, with the caches warm and with a cache too small to keep anything."""
from common import ROOT, Weir, folder, row, wrk
from read import publish

SCRIPTS = ROOT / "bench" / "wrk"


def rates(where, env):
    with Weir(where, env=env) as weir:
        made = publish(weir)
        token = weir.sign_up("reader@example.com")
        return {
            "sign-up": wrk(weir.url + "/v1/users", script=SCRIPTS / "sign_up.lua", seconds=4)["rate"],
            "sign-in": wrk(weir.url + "/v1/sessions", script=SCRIPTS / "sign_in.lua", seconds=4)["rate"],
            "profile": wrk(weir.url + "/v1/me", script=SCRIPTS / "profile.lua", args=["--", token], seconds=4)["rate"],
            "article": wrk(f"{weir.url}/v1/articles/{made}", seconds=4)["rate"],
        }


def measure():
    with folder() as where:
        cold = rates(where / "cold", {"WEIR_CACHE_LOCAL": "0B"})
        warm = rates(where / "warm", {})
    return [row(name, "requests/s", warm[name], "without caches", cold[name], warm[name] / cold[name]) for name in warm]
