"""One process of perfrun under limits, and what must hold of every one."""

import ctypes
import dataclasses
import os
import pathlib
import re
import resource
import select
import signal
import time

# A command may hold so much.
MEBIBYTES = 2048
# More of what one says is not kept.
MOST_OUTPUT = 1 << 26
# A runaway ends here, and not with the machine.
CEILING = {
    resource.RLIMIT_AS: 4 << 30,
    resource.RLIMIT_FSIZE: 1 << 30,
    resource.RLIMIT_CPU: 120,
    resource.RLIMIT_CORE: 0,
}
# What a process that was killed needs to be gone.
GRACE = 0.5

# As `base::printable` has it: what moves, colours, turns or hides.
TREACHEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u00ad\u034f\u115f\u1160\u180e\u200b"
    "\u2028\u2029\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
FAULT = re.compile(r"panicked at|internal error|RUST_BACKTRACE|stack overflow|memory allocation of")


@dataclasses.dataclass
class Done:
    """What a process did."""

    words: list
    code: int = -1
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    mebibytes: float = 0.0
    problems: list = dataclasses.field(default_factory=list)


def become_heir():
    """What outlives its parent comes to this process, whatever group it is in."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(words, folder, env, codes=(0, 2, 3), limits=None, seconds=20, mebibytes=MEBIBYTES):
    """Runs a command in a folder and looks at how it ended."""
    done = Done(words)
    # Pipes, since the size of files may be what is scarce.
    pipes = [os.pipe(), os.pipe()]
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(words, folder, [writing for _, writing in pipes], env, CEILING | (limits or {}))
    for _, writing in pipes:
        os.close(writing)
    in_time, raw = _listen(child, [reading for reading, _ in pipes], begun + seconds)
    if not in_time:
        _kill_group(child)
        done.problems.append(f"no end after {seconds} s")
    _, status, usage = os.wait4(child, 0)
    done.seconds = time.monotonic() - begun
    done.mebibytes = usage.ru_maxrss / 1024
    if left := _end_heirs():
        done.problems.append(f"left running: {', '.join(left)}")
    done.code = os.waitstatus_to_exitcode(status)
    done.out, done.err = (text.decode("utf-8", "replace") for text in raw)
    for bytes_of, text, name in zip(raw, (done.out, done.err), ("standard output", "standard error")):
        # What was cut may end within a character.
        if len(bytes_of) < MOST_OUTPUT and text.encode() != bytes_of:
            done.problems.append(f"{name} is not UTF-8")
        if found := TREACHEROUS.search(text):
            done.problems.append(f"{name} shows {found[0]!r}")
    if in_time and done.code < 0:
        done.problems.append(f"ended by {signal.Signals(-done.code).name}")
    elif in_time and done.code not in codes:
        done.problems.append(f"exit code {done.code}")
    elif in_time and done.code in (1, 2) and not done.err.strip():
        done.problems.append(f"exit code {done.code} without a word")
    if found := FAULT.search(done.err):
        done.problems.append(_line_of(done.err, found.start()))
    if done.mebibytes > mebibytes:
        done.problems.append(f"{done.mebibytes:.0f} MiB")
    return done


def _listen(child, pipes, until):
    """Whether a process ends in time, and what it says until then."""
    handle = os.pidfd_open(child)
    said = {pipe: bytearray() for pipe in pipes}
    is_over, waited = False, [handle, *pipes]
    try:
        while not is_over:
            ready = select.select(waited, [], [], max(0, until - time.monotonic()))[0]
            if not ready:
                break
            # At its end what it said is in the pipes; whoever else holds them is not waited for.
            is_over = handle in ready
            for pipe in ready if not is_over else pipes:
                while select.select([pipe], [], [], 0)[0]:
                    chunk = os.read(pipe, 1 << 16)
                    said[pipe] += chunk[:max(0, MOST_OUTPUT - len(said[pipe]))]
                    if not chunk:
                        waited = [one for one in waited if one != pipe]
                        break
                    if time.monotonic() > until:
                        break
    finally:
        for file in (handle, *pipes):
            os.close(file)
    return is_over, [bytes(said[pipe]) for pipe in pipes]


def _become(words, folder, files, env, limits):
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(files[0], 1)
        os.dup2(files[1], 2)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for limit, value in limits.items():
            resource.setrlimit(limit, (value, value))
        os.execve(words[0], [os.fsencode(word) for word in words], env)
    finally:
        os._exit(127)


def _kill_group(child):
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _end_heirs():
    """Names of processes that outlived the command; they are ended."""
    left, until = [], time.monotonic() + GRACE
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return left
        if ended == 0 and time.monotonic() > until:
            for child in _children():
                left.append(_name(child))
                os.kill(child, signal.SIGKILL)
        if ended == 0:
            time.sleep(0.005)


def _children():
    own = os.getpid()
    for entry in os.listdir("/proc"):
        try:
            # The name stands in parentheses and may hold anything: state and parent follow it.
            if entry.isdigit() and int(_proc(entry, "stat").rsplit(b")", 1)[1].split()[1]) == own:
                yield int(entry)
        except (OSError, IndexError):
            pass


def _proc(process, file):
    return pathlib.Path("/proc", str(process), file).read_bytes()


def _name(process):
    try:
        return _proc(process, "cmdline").replace(b"\0", b" ").decode(errors="replace")[:80].strip()
    except OSError:
        return str(process)


def _line_of(text, at):
    """The line of a fault and the one after it: what was said, and where."""
    begin = text.rfind("\n", 0, at) + 1
    return " | ".join(text[begin:].splitlines()[:2])[:200]
