"""up, down and status."""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import stat
import sys
import time

from . import SERVICES, USUAL, process
from .service import POLL_SECONDS, Failure, Service, Stopped


def main(arguments):
    """Does what the command line asks; the exit code."""
    asked = _parse(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return {"up": _up, "down": _down, "status": _status}[asked.command](asked)
    except Failure as why:
        _say(str(why))
        return interrupted or why.code
    except (process.Stuck, OSError) as why:
        _say(str(why))
        return interrupted or 1


interrupted = 0  # the exit code that a signal asks for


def _interrupt(number, _frame):
    """Only takes note: everything that waits looks at the event, and what has been started is then taken back in order."""
    global interrupted
    interrupted = 128 + number
    Service.stop.set()


def _parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/services", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Starts and stops private servers on 127.0.0.1, and prints their addresses as settings.",
        epilog="up      starts what doesn't run, waits until all can be used, prints their settings, ready for a shell's eval\n"
               "down    stops them and removes their data; without names everything\n"
               "status  which run, where, since when; exit code 0 only if all that are asked for run\n\n"
               "They live in $WEIR_SERVICES_DIR, or weir-services-UID under $XDG_RUNTIME_DIR or /tmp.\n"
               "Exit codes: 0 done, 1 failed, 2 used wrongly, 3 something couldn't be fetched from outside.")
    parser.add_argument("command", choices=("up", "down", "status"))
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"of {' '.join(SERVICES)}; none means {' '.join(USUAL)}")
    parser.add_argument("--brokers", type=int, choices=(1, 3), help="how many of Kafka (1, kept if it exists)")
    asked = parser.parse_args(arguments)
    for name in asked.services:
        if name not in SERVICES:
            parser.error(f"unknown service {name!r} (of {', '.join(SERVICES)})")
    asked.services = list(dict.fromkeys(asked.services))
    return asked


def _say(text):
    print(f"services: {text}", file=sys.stderr, flush=True)


# The folder.

def _root():
    root = pathlib.Path(os.environ.get("WEIR_SERVICES_DIR") or _usual_root()).absolute()
    if not re.fullmatch(r"[\w/.+@-]+", str(root)):
        raise Failure(f"{root}: the start scripts of the servers can't do with such characters in a path")
    return root


def _usual_root():
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    usable = runtime and os.path.isdir(runtime) and os.access(runtime, os.W_OK)
    return pathlib.Path(runtime if usable else "/tmp", f"weir-services-{os.getuid()}")


@contextlib.contextmanager
def _locked(root):
    """The folder, ours alone (0700) and locked against another call; removed at the end if nothing is in it."""
    handle = None
    while handle is None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = _lock(root)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # not empty
            root.rmdir()
        os.close(handle)


def _lock(root):
    """A descriptor that holds the lock; None if the folder was removed by who had it before."""
    try:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as why:
        raise Failure(f"{root}: {why.strerror}") from why
    try:
        found = os.fstat(handle)
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise Failure(f"{root} must belong to this user alone (mode 0700)")
        Service.lock(handle)
        if root.exists() and os.path.samestat(found, root.stat()):
            handle, kept = None, handle
            return kept
        return None
    finally:
        if handle is not None:
            os.close(handle)


# The commands.

def _up(asked):
    root = _root()
    with _locked(root):
        services = [SERVICES[name](root, asked) for name in asked.services or USUAL]
        for service in services:
            service.install()
            service.fetch()
        problems = _side_by_side(services)
        if problems or interrupted:
            _undo(services)
            for problem in problems:
                _say(str(problem))
            return interrupted or max(problem.code for problem in problems)
        print("".join(f"{name}={value}\n" for service in services for name, value in service.lines().items()), end="", flush=True)
    return 0


def _side_by_side(services):
    """Brings all up, each in a thread of its own; what went wrong. After the first problem the others needn't go on."""
    problems = []
    with concurrent.futures.ThreadPoolExecutor(len(services)) as pool:
        pending = {pool.submit(_bring_up, service) for service in services}
        while pending:
            # With a limit: a signal that comes just before a thread falls asleep doesn't wake it.
            done, pending = concurrent.futures.wait(pending, POLL_SECONDS, concurrent.futures.FIRST_COMPLETED)
            for why in filter(None, (future.exception() for future in done)):
                Service.stop.set()
                problems.append(why if isinstance(why, Failure) else Failure(f"{type(why).__name__}: {why}"))
    reasons = [problem for problem in problems if not isinstance(problem, Stopped)]
    return reasons or problems


def _bring_up(service):
    began = time.monotonic()
    service.up()
    _say(f"{service.name} is ready at {' '.join(service.addresses())} ({time.monotonic() - began:.1f} s)")


def _undo(services):
    for service in services:
        try:
            service.undo()
        except process.Stuck as why:  # the others can still be stopped
            _say(f"{service.name}: {why}")


def _down(asked):
    root = _root()
    if not root.exists():
        return 0
    with _locked(root):
        for name in asked.services or SERVICES:
            SERVICES[name](root).down()
    return 0


def _status(asked):
    services = [service(_root()) for name, service in SERVICES.items()]
    if asked.services:
        services = [service for service in services if service.name in asked.services]
    else:
        services = [service for service in services if service.name in USUAL or service.exists()]
    for service in services:
        print(f"{service.name:14}{_describe(service)}")
    return 0 if all(service.runs() for service in services) else 1


def _describe(service):
    if not service.exists():
        return "down"
    processes = service.state["processes"]
    pids = " ".join(str(known["identity"]["pid"]) for known in processes.values())
    if not service.runs():
        return f"dead      was {' '.join(service.addresses())} pid {pids}" if processes else "preparing"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(max(known["since"] for known in processes.values())))
    return f"running   {' '.join(service.addresses())} pid {pids} since {since}"
