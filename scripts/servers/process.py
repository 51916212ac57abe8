"""Processes: started with nothing of ours in their hands, known by more than their number, and killed with their children."""
import os
import pathlib
import select
import signal
import subprocess
import time

GONE_SECONDS = 10  # a killed process that takes longer hangs in the kernel
POLL_SECONDS = 0.002
BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Stuck(Exception):
    """A process that was killed and doesn't end."""


def stat(pid):
    """The fields of /proc/PID/stat from the state on; None if there is no such process, or only its exit code is left."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2:].split()
    return None if fields[0] in "ZX" else fields


def identity(pid):
    """What tells this process from a later one with its number: number, start in ticks since boot, and the boot."""
    fields = stat(pid)
    return {"pid": pid, "start": int(fields[19]) if fields else None, "boot": BOOT}


def alive(process):
    """Whether the process with this `identity` still runs."""
    return process["start"] is not None and identity(process["pid"]) == process


def spawn(argv, log, env, cwd):
    """Starts a program in a session of its own: no terminal's signal reaches it, and it holds no descriptor but its log's."""
    with open(log, "ab") as out:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd=cwd, start_new_session=True)


def kill(process):
    """Kills the process and all that it started, and waits until they are gone. Does nothing if its number is another's now."""
    try:
        handle = os.pidfd_open(process["pid"])
    except ProcessLookupError:
        return
    try:
        # The handle came first, so what is checked here is what gets the signals, whatever happens to the number.
        if not alive(process):
            return
        signal.pidfd_send_signal(handle, signal.SIGSTOP)  # it starts nothing more while its children are counted
        _wait_until_still(process["pid"])
        for child in _children(process["pid"]):
            kill(child)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        _wait_until_gone(handle, process["pid"])
    except ProcessLookupError:  # it ended by itself
        pass
    finally:
        os.close(handle)


def _wait_until_still(pid):
    deadline = time.monotonic() + GONE_SECONDS
    while (fields := stat(pid)) and fields[0] not in "Tt":
        if time.monotonic() > deadline:
            raise Stuck(f"process {pid} can't be stopped")
        time.sleep(POLL_SECONDS)


def _wait_until_gone(handle, pid):
    """The handle tells when the last thread has ended and with it the descriptors; /proc already when the first has."""
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    if not poller.poll(GONE_SECONDS * 1000):
        raise Stuck(f"process {pid} doesn't end")


def _children(parent):
    numbers = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [identity(pid) for pid in numbers if (fields := stat(pid)) and int(fields[1]) == parent]
