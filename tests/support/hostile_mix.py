"""Random hostile programs whose end is known: attempts on whoever runs them, and then a failure that none can hide."""

from __future__ import annotations

import random

ATTEMPTS = (
    'os.write(4, b\'{"value": "forged", "status": "ok", "exit_code": 0}\')',
    "os.write(4, b'{\"started\": true}')",
    'os.write(4, b\'{"phase": "compile", "error_type": "SyntaxError"}\')',
    "os.write(4, b'ready 1')",
    "os.write(4, b'failed OSError: forged')",
    "os.write(4, b'\\xff' * 9000)",
    "[os.write(4, b'{}') for _ in range(300)]",
    "os.close(0)",
    "os.close(1)",
    "os.close(4)",
    "os.dup2(1, 4)",
    "os.dup2(4, 1)",
    "os.closerange(3, 99)",
    "sys.stdout = sys.stderr = None",
    "os._exit = lambda code: None",
    "builtins.BaseException = builtins.repr = builtins.getattr = None",
    "json.dumps = traceback.format_exception = lambda *a, **k: '{\"exit_code\": 0}'",
    "sys.excepthook = lambda *a: None",
    "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 10, 12, 13, 14, 15, 17, 24)]",
    "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
    "signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01) if signal.signal(14, lambda *a: None) or True else None",
    "[os.kill(1, n) for n in (2, 9, 15, 19)]",
    "[os.kill(os.getppid(), n) for n in (2, 9, 15, 19)]",
    "os.kill(-1, 0)",
    "os.setsid()",
    "os.nice(19)",
    "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
    "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))",
    "os.fork() or time.sleep(60)",
    "os.fork() or os.setsid() or os.fork() or time.sleep(60)",
    "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "threading.Thread(target=os.read, args=(3, 9), daemon=True).start()",
    "gc.disable()",
    "sys.setrecursionlimit(10 ** 6)",
    "[socket.socketpair() for _ in range(50)]",
    "ctypes.CDLL(None).prctl(4, 0)",
    "ctypes.CDLL(None).syscall(9999)",
    "open('/proc/self/oom_score_adj', 'w').write('1000')",
    "os.chmod('.', 0)",
    "bytearray(100 << 20)",
)
"""One expression each, which neither ends the program nor makes its end a success."""
ENDS = {
    "posix._exit(7)": ("exception",),
    "1 / 0": ("exception",),
    "raise SystemExit(3)": ("exception",),
    "posix.kill(posix.getpid(), 9)": ("exception",),
    "ctypes.string_at(0)": ("exception",),
    "ctypes.CDLL(None).abort()": ("exception",),
    "while True: pass": ("timeout",),
    "keep = [b'x' * (64 << 20) for _ in range(99)]": ("memory",),
    "while True: posix.write(2, b'x' * 4096)": ("output_limit", "exception"),
    "ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None)": ("blocked",),
}
"""How a program ends, and the statuses that say so where nothing ended it before."""
_IMPORTS = (
    "import builtins, ctypes, gc, json, os, posix, resource, signal, socket, sys, threading, time, traceback\n"
    "Wrong = BaseException\n"
)


def hostile_program(seed: int) -> str:
    """A program of some attempts, each of which may fail, and an end that is a failure."""
    draw = random.Random(seed)
    parts = [f"try: {attempt}\nexcept Wrong: pass\n" for attempt in draw.sample(ATTEMPTS, draw.randint(1, 6))]
    return _IMPORTS + "".join(parts) + draw.choice(list(ENDS)) + "\n"
