"""Stands between perfrun and its worker and passes on what both say, but for one thing: see plan.json.

    python3 tamper.py plan.json PERFRUN worker
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

ENDS = ("hello", "ready", "done", "failed")


def launch(folder):
    """The number of this worker among those of the case."""
    for number in range(10_000):
        try:
            os.close(os.open(folder / f"launch-{number}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            pass
    return -1


def say(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def change_files(rng, command):
    """Damages one of the files that the worker was asked to write."""
    import mutate
    folder = pathlib.Path(command.get("path", "/nonexistent"))
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if not files:
        return
    file = rng.choice(files)
    data, kind = file.read_bytes(), rng.randrange(6)
    if kind == 0:
        file.unlink()
    elif kind == 1:
        file.unlink()
        file.symlink_to(rng.choice(("/dev/zero", "../../../../x.yaml", "/nonexistent")))
    elif kind == 2:
        file.unlink()
        os.mkfifo(file)
    else:
        file.write_bytes(mutate.json_bytes(rng, data) if file.suffix == ".json" else mutate.damage(rng, data))


def tamper(how, line, said, rng, child):
    """What is said instead of a line; `None` where the worker says nothing more."""
    import mutate
    if how == "json":
        return json.dumps(mutate.tree(rng, json.loads(line))).encode() + b"\n"
    if how == "bytes":
        return mutate.damage(rng, line)
    failure = {"kind": rng.choice(("model", "killed", "x")), "message": rng.choice(mutate.STRINGS)}
    simple = {
        "drop": b"", "twice": line * 2, "empty": b"\n" + line, "number": b"1e999\n", "nul": b"\0\0\n",
        "garbage": rng.randbytes(300) + b"\n",
        "replay": b"".join(said) + line, "line": b"x" * (17 << 20) + b"\n", "deep": b"[" * 200_000 + b"\n",
        "fail": json.dumps({"type": "failed", "failure": failure}).encode() + b"\n",
        "many_metrics": b'{"type":"metrics","values":{' + b'"load_ns":7,' * 100_000 + b'"load_ns":7}}\n' + line,
        "swap": b'{"type":"phase","name":"measure"}\n' + line,
    }
    if how in simple:
        return simple[how]
    if how == "flood":
        for _ in range(3000):
            say(line * 100)
    elif how == "stderr":
        for _ in range(100):
            sys.stderr.write(("\x1b[31m\u202e" + "e" * 998 + "\n") * 1000)
    elif how == "silence":
        time.sleep(3600)
    elif how == "slow":
        for byte in line[:40]:
            say(bytes([byte]))
            time.sleep(0.02)
        return line[40:]
    elif how == "exit":
        os._exit(rng.choice((0, 1, 77, 255)))
    elif how == "kill":
        os.kill(os.getpid(), rng.choice((signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGSTOP)))
    elif how == "close":
        os.close(1)
        time.sleep(3600)
    elif how in ("orphan", "daemon"):
        # One that leaves the group, and one that also ignores signals and has no parent.
        hold = "trap '' HUP TERM INT; exec sleep 3600" if how == "daemon" else "exec sleep 3600"
        words = ["sh", "-c", f"({hold}) & ({hold}) &"]
        subprocess.Popen(words, start_new_session=how == "daemon", stdin=subprocess.DEVNULL)
        if rng.random() < 0.5:
            os._exit(0)
    return line


def main():
    plan_path, *words = sys.argv[1:]
    plan = json.loads(pathlib.Path(plan_path).read_text())
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    number = launch(pathlib.Path(plan_path).resolve().parent)
    if plan["launch"] not in (None, number):
        os.execvp(words[0], words)
    rng, how, said = random.Random(f"{plan['seed']}/{number}"), plan["how"], []
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if how == "deaf":
        time.sleep(3600)
    for command in sys.stdin.buffer:
        child.stdin.write(command)
        child.stdin.flush()
        while line := child.stdout.readline():
            answer = json.loads(line)
            if how == "files" and answer["type"] == "done":
                change_files(rng, json.loads(command))
            elif len(said) == plan["line"]:
                line = tamper(how, line, said, rng, child)
            said.append(line[:1 << 16])
            say(line)
            if answer["type"] in ENDS:
                break
    child.stdin.close()
    if how == "late":
        say(b'{"type":"done"}\n' * 3)
    elif how == "stay":
        time.sleep(3600)
    sys.exit(child.wait())


main()
