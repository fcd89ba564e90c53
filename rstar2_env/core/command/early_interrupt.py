"""Makes Ctrl-C end the command ``rstar2`` without a traceback, even while the command imports modules.

Not covered: other programs that import the package; their signal handlers are unchanged.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading


def end_on_interrupt() -> None:
    """In the command ``rstar2``, let Ctrl-C end the process silently, until ``raise_on_interrupt`` is called."""
    words = [*getattr(sys, "argv", [])[:1], *getattr(sys, "orig_argv", [])[1:3]]
    ours = any(os.path.basename(word) in ("rstar2", "rstar2.exe", "rstar2_env.cli") for word in words)
    main = threading.current_thread() is threading.main_thread()
    # A process that was started in the background may ignore the signal; it continues to do so.
    if ours and main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_on_interrupt() -> None:
    """From now on, let Ctrl-C raise ``KeyboardInterrupt`` as usual."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def repeat_interrupt() -> None:
    """Interrupt the main thread again, a moment later, unless the process is ending.

    Python drops a ``KeyboardInterrupt`` that is raised in a destructor or a callback of the garbage collector. An
    import of torch runs thousands of these.
    """
    timer = threading.Timer(0.05, _interrupt_main_thread)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # while the interpreter ends, no thread can start
        timer.start()


def _interrupt_main_thread() -> None:
    if threading.main_thread().is_alive():
        signal.raise_signal(signal.SIGINT)
