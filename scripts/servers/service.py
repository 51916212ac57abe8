"""What the services have in common: a folder, what is remembered in it, and how one is brought up and down."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

from . import ports, process

READY_SECONDS = 120  # the limit; on two idle cores all together take a fifth of it
POLL_SECONDS = 0.05
LOG_LINES = 25
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"])


class Failure(Exception):
    """A service that can't be used, with why; `code` is the exit code of the whole."""

    code = 1


class Unreachable(Failure):
    """Something couldn't be fetched from outside: not a failure of what is tested here."""

    code = 3


class TimedOut(Failure):
    """A command that didn't end in its time."""


class Stopped(Failure):
    """The call was interrupted."""


class Service:
    """One row of scripts/services. Subclasses say what is their own, and below `up` everything is alike.

    `settings` are its ports and passwords, made once and kept: a service that is started again has the same address.
    One instance is used by one thread; `stop` (an Event) ends all that waits.
    """

    name = ""
    needs = ""           # the group of scripts/needs with its packages
    programs = ()        # the group is asked for only if one of these is missing
    stop = threading.Event()

    def __init__(self, root, options=None):
        self.options = options
        self.home = pathlib.Path(root) / self.name
        self.log = self.home / "log"
        self.made = False    # by this call, so that it's taken away again if the call fails
        self.started = []    # the identities of what this call started
        self.state = {"settings": {}, "prepared": False, "processes": {}}
        if self._file.exists():
            self.state = json.loads(self._file.read_text())

    # What a service says of itself.

    def fetch(self):
        """Gets from outside what isn't a Debian package. Runs before anything is started."""

    def choose(self):
        """The settings of a new service."""
        raise NotImplementedError

    def prepare(self):
        """Writes its files, once; a preparation that was cut off begins again in an empty folder."""

    def commands(self):
        """Its processes: name to command line, in the order of starting."""
        raise NotImplementedError

    def ports(self, name):
        """The ports on which a process of it will listen."""
        raise NotImplementedError

    def environment(self):
        """Environment variables besides the few that all have."""
        return {}

    def check(self):
        """Uses the service once as its users will; raises while that doesn't succeed."""
        raise NotImplementedError

    def lines(self):
        """The settings for Weir: variable to value."""
        raise NotImplementedError

    def addresses(self):
        """Where it is, for people."""
        raise NotImplementedError

    # What all do alike.

    @property
    def settings(self):
        return self.state["settings"]

    @property
    def _file(self):
        return self.home / "state.json"

    def install(self):
        """Debian's packages, if its programs aren't there."""
        if all(shutil.which(program, path=PATH) for program in self.programs):
            return
        asked = subprocess.run([REPOSITORY / "scripts/needs", self.needs], stdout=2, check=False)
        if asked.returncode != 0:
            raise Failure(f"{self.name}: its Debian packages couldn't be installed (scripts/needs {self.needs})")

    def runs(self):
        """Whether all of its processes live."""
        processes = self.state["processes"]
        return bool(processes) and all(name in processes and process.alive(processes[name]["identity"]) for name in self.commands())

    def exists(self):
        return self.home.exists()

    def set_up(self):
        """Makes its folder and its files, if they aren't there."""
        self._refuse_foreign()
        if not self.settings:
            self.home.mkdir(mode=0o700, exist_ok=True)
            self.made = True
            self.state["settings"] = self.choose()
            self.remember()
        if not self.state["prepared"]:
            self._prepare_anew()

    def up(self):
        """Returns when the service can be used. What runs already is kept."""
        self.set_up()
        for name, command in self.commands().items():
            known = self.state["processes"].get(name)
            if not (known and process.alive(known["identity"])):
                self._start(name, command)
        self.wait()

    def down(self):
        """Kills its processes and removes its folder."""
        self._refuse_foreign()
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def kill(self):
        for known in reversed(list(self.state["processes"].values())):
            process.kill(known["identity"])

    def undo(self):
        """Takes back what this call did: all of a new service, of an old one what was started again."""
        if self.made:
            self.down()
            return
        for started in reversed(self.started):
            process.kill(started)

    @classmethod
    def lock(cls, handle):
        """Waits until this process alone has the file or folder; until `handle` is closed."""
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            cls.pause()

    @classmethod
    def pause(cls):
        """Waits a moment; raises if the call has been interrupted."""
        if cls.stop.wait(POLL_SECONDS):
            raise Stopped("interrupted")

    def run(self, argv, timeout=READY_SECONDS, env=None, log=None):
        """Runs a command to its end; its output goes to the log. Killed with its children when the call is interrupted."""
        log = log or self.log
        child = process.spawn(argv, log, self._environment() if env is None else env, log.parent)
        started = process.identity(child.pid)
        deadline = time.monotonic() + timeout
        try:
            while child.poll() is None:
                if time.monotonic() > deadline:
                    raise TimedOut(f"{self.name}: {argv[0]} didn't end within {timeout} s\n{tail(log)}")
                self.pause()
        finally:
            if child.returncode is None:
                process.kill(started)
                child.wait()
        if child.returncode != 0:
            raise Failure(f"{self.name}: {argv[0]} ended with exit code {child.returncode}\n{tail(log)}")

    def write(self, name, text, mode=0o600):
        """A file in its folder."""
        path = self.home / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def _refuse_foreign(self):
        """A folder of that name which isn't one of ours is neither used nor removed."""
        if self.home.exists() and not self._file.exists() and any(self.home.iterdir()):
            raise Failure(f"{self.home} isn't the folder of a service; it is left alone")

    def _prepare_anew(self):
        for leftover in self.home.iterdir():
            if leftover != self._file:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        (self.home / "tmp").mkdir()
        self.prepare()
        self.state["prepared"] = True
        self.remember()

    def _start(self, name, command):
        for port in self.ports(name):
            if ports.taken(port):
                raise Failure(f"{self.name}: port {port} of 127.0.0.1, which was its own, is taken by another program. "
                              f"`scripts/services down {self.name}` gives the port and the data up; then `up` takes another.")
        child = process.spawn(command, self.log, self._environment(), self.home)
        known = process.identity(child.pid)
        self.started.append(known)
        self.state["processes"][name] = {"identity": known, "since": time.time()}
        self.remember()

    def wait(self):
        """Returns when the service can be used; raises if a process of it ends, or after READY_SECONDS."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            dead = [name for name, known in self.state["processes"].items() if not process.alive(known["identity"])]
            if dead:
                raise Failure(f"{self.name}: {', '.join(dead)} ended while starting; the last lines of its log:\n{tail(self.log)}")
            try:
                return self.check()
            except Stopped:
                raise
            except (OSError, ValueError, Failure) as why:
                if time.monotonic() > deadline:
                    raise Failure(f"{self.name}: not usable after {READY_SECONDS} s ({why}); the last lines of its log:\n"
                                  f"{tail(self.log)}") from why
            self.pause()

    def _environment(self):
        tmp = str(self.home / "tmp")
        return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": str(self.home), "TMPDIR": tmp, **self.environment()}

    def remember(self):
        """Writes down what is known of it."""
        draft = self.home / "state.new"
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(self.state, indent=1))
        draft.replace(self._file)


def tail(log):
    """The last lines of a log."""
    if not log.exists():
        return "    (no log)"
    return "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-LOG_LINES:])
