"""Lists of system calls, with their numbers: calls that are allowed, refused, or end the program.

Each entry is ``name x86_64 aarch64``; a dash means that the architecture does not have the call. The numbers are part
of the kernel's interface and never change. A call that is not listed returns ENOSYS, as on an older kernel, so that
libraries fall back. ``memfd_create`` is not listed, since only a control group would count its memory.
"""

from __future__ import annotations

ALLOWED = {
    "files": """
read 0 63, write 1 64, open 2 -, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291,
lseek 8 62, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69, pwritev 296 70,
preadv2 327 286, pwritev2 328 287, access 21 -, faccessat 269 48, faccessat2 439 439, fcntl 72 25, fsync 74 82,
fdatasync 75 83, truncate 76 45, ftruncate 77 46, getdents 78 -, getdents64 217 61, getcwd 79 17, chdir 80 49,
fchdir 81 50, rename 82 -, renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34, rmdir 84 -, creat 85 -,
link 86 -, linkat 265 37, unlink 87 -, unlinkat 263 35, symlink 88 -, symlinkat 266 36, readlink 89 -,
readlinkat 267 78, chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55,
lchown 94 -, fchownat 260 54, umask 95 166, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88,
mknod 133 -, mknodat 259 33, statfs 137 43, fstatfs 138 44, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10,
listxattr 194 11, llistxattr 195 12, flistxattr 196 13, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7,
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, fadvise64 221 223, fallocate 285 47, sendfile 40 71,
copy_file_range 326 285, openat 257 56, close_range 436 436, ioctl 16 29, dup 32 23, dup2 33 -, dup3 292 24,
pipe 22 -, pipe2 293 59
""",
    "waiting": """
poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21,
epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441, eventfd 284 -, eventfd2 290 19, pause 34 -, futex 202 98,
futex_waitv 449 449, futex_wake 454 454, futex_wait 455 455, futex_requeue 456 456
""",
    "memory": """
mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214, mremap 25 216, msync 26 227, madvise 28 233
""",
    "processes and their identity": """
getpid 39 172, getppid 110 173, gettid 186 178, getpgrp 111 -, getpgid 121 155, setpgid 109 154, getsid 124 156,
fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95,
pidfd_open 434 434, getuid 102 174, getgid 104 176, geteuid 107 175, getegid 108 177, getresuid 118 148,
getresgid 120 150, getgroups 115 158, setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143,
setresuid 117 147, setresgid 119 149, capget 125 90, prctl 157 167, arch_prctl 158 -, set_tid_address 218 96,
set_robust_list 273 99, rseq 334 293, restart_syscall 219 128, getpriority 140 141, setpriority 141 140,
sched_yield 24 124, sched_setparam 142 118, sched_getparam 143 121, sched_setscheduler 144 119,
sched_getscheduler 145 120, sched_get_priority_max 146 125, sched_get_priority_min 147 126,
sched_rr_get_interval 148 127, sched_setaffinity 203 122, sched_getaffinity 204 123, getrlimit 97 163,
setrlimit 160 164, prlimit64 302 261, getrusage 98 165, sysinfo 99 179, uname 63 160, getcpu 309 168,
getrandom 318 278
""",
    "signals, within the pid namespace": """
rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, rt_sigpending 127 136, rt_sigtimedwait 128 137,
rt_sigsuspend 130 133, sigaltstack 131 132, kill 62 129, tkill 200 130, tgkill 234 131, pidfd_send_signal 424 424
""",
    "time": """
nanosleep 35 101, clock_nanosleep 230 115, getitimer 36 102, setitimer 38 103, alarm 37 -, gettimeofday 96 169,
time 201 -, times 100 153, clock_gettime 228 113, clock_getres 229 114
""",
    "on pairs of sockets (none can be made that leads elsewhere)": """
shutdown 48 210, sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212, getsockname 51 204,
getpeername 52 205, getsockopt 55 209, setsockopt 54 208
""",
}
"""Allowed calls by purpose: calls that ``tools/trace_calls.py`` recorded, and those in ``KIN`` and ``EXTRA``."""

KIN = """
epoll_create epoll_pwait epoll_pwait2 eventfd faccessat fchmodat2 fork futex_requeue futex_wait futex_waitv futex_wake
futimesat getcpu getdents getrlimit gettimeofday lstat mknod nanosleep pipe ppoll preadv pwritev renameat2
rt_sigsuspend select setgid setrlimit setuid stat statx time tkill utime utimes
"""
"""Allowed calls that ``tools/trace_calls.py`` did not record: other versions of the C library use them instead of
recorded calls."""
EXTRA = {
    "capget": "reads the capabilities of the process, which has none",
    "recvmsg": "buffers and descriptors among a program's own processes, as newer versions of asyncio send them",
    "sendmsg": "as recvmsg",
}
"""Allowed calls that ``tools/trace_calls.py`` did not record, each with the reason why it is allowed."""

IPC = """
shmget 29 194, shmat 30 196, shmctl 31 195, shmdt 67 197, semget 64 190, semop 65 193, semctl 66 191,
semtimedop 220 192, msgget 68 186, msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181,
mq_timedsend 242 182, mq_timedreceive 243 183, mq_notify 244 184, mq_getsetattr 245 185
"""
"""Calls for memory, semaphores and queues that all processes of an ipc namespace find by number or name."""

REFUSED = f"""
unshare 272 97, setns 308 268, socket 41 198, connect 42 203, bind 49 200, listen 50 201, accept 43 202,
accept4 288 242, setgroups 116 159, personality 135 92, perf_event_open 298 241, userfaultfd 323 282, kcmp 312 272,
adjtimex 159 171, clock_adjtime 305 266, move_pages 279 239, migrate_pages 256 238, chroot 161 51,
sethostname 170 161, setdomainname 171 162, vhangup 153 58, iopl 172 -, ioperm 173 -, modify_ldt 154 -,
pidfd_getfd 438 438, name_to_handle_at 303 264, fanotify_mark 301 263, syslog 103 116, quotactl 179 60,
quotactl_fd 443 443, splice 275 76, sync 162 81, setsid 112 157, {IPC}
"""
"""Calls that return EPERM; benign programs try them and handle the error.

``setsid`` is among them because the kernel's autogroup gives each session its own share of the cores: a program that
creates many sessions would slow down all others.
"""

LOCKS = "flock 73 32"
"""Calls that return ENOLCK, as do the commands ``FCNTL_LOCKS`` of fcntl: a lock on a file of the host would block other
programs, and no control group counts the kernel memory of locks."""

ENDED_FOR = """
ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, mount 165 40, umount2 166 39,
pivot_root 155 41, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, move_mount 429 429,
open_tree 428 428, mount_setattr 442 442, swapon 167 224, swapoff 168 225, reboot 169 142, kexec_load 246 104,
kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106, bpf 321 280,
add_key 248 217, request_key 249 218, keyctl 250 219, open_by_handle_at 304 265, fanotify_init 300 262, acct 163 89,
settimeofday 164 170, clock_settime 227 112
"""
"""Calls that end the program, since no benign program makes them."""

ABSENT = "memfd_create 319 279, mbind 237 235"
"""Calls that ``tools/trace_calls.py`` recorded but that return ENOSYS, since no limit counts the memory they use."""

SPECIAL = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socketpair": (53, 199),
    "setsockopt": (54, 208),
    "prctl": (157, 167),
    "arch_prctl": (158, -1),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "prlimit64": (302, 261),
    "mmap": (9, 222),
}
"""Calls that are allowed only with certain arguments (see ``seccomp``)."""
SETTING_LIMITS = "setrlimit 160 164"
"""Calls that set a limit; their first argument is the number of the limit."""

# Without a process namespace, a program shares process ids with all other processes of the machine.

SOCKETS = "socket 41 198"
"""Call that makes a socket."""
RINGS = "io_uring_setup 425 425"
"""Call that makes the rings of ``io_uring``, through which a program can make sockets without a system call."""
PASSING = "sendmsg 46 211, sendmmsg 307 269"
"""Calls that can send file descriptors to another process."""
LEAVING = "setpgid 109 154"
"""Calls that leave the process group, which is used to kill the whole program."""
BY_NUMBER = """
getpgid 121 155, getsid 124 156, sched_setaffinity 203 122, sched_getaffinity 204 123,
sched_setparam 142 118, sched_getparam 143 121, sched_setscheduler 144 119, sched_getscheduler 145 120,
sched_rr_get_interval 148 127
"""
"""Calls whose first argument is a process id."""
LIMITS_BY_NUMBER = "prlimit64 302 261"
"""Call whose first argument is a process id, and which reads or sets a limit of that process."""
PRIORITY = "setpriority 141 140, getpriority 140 141"
"""Calls for the priority of processes. The first argument determines whether the second is the id of a process, of a
group or of a user."""
BY_DESCRIPTOR = "pidfd_open 434 434, pidfd_send_signal 424 424"
"""Calls that reach a process through a file descriptor."""
SIGNALLING = "kill 62 129"
"""Call that sends a signal to a process or a process group, which its first argument determines."""
SIGNALLING_THREADS = "tgkill 234 131"
"""Call that sends a signal to one thread; its first argument is the id of the thread's process."""
SIGNALLING_ANYONE = "tkill 200 130"
METADATA = """
chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54,
utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7,
removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16
"""
"""Calls that change files in ways that Landlock does not control; refused if files of the user are visible."""


def names(*texts: str) -> set[str]:
    """Return the names of the system calls that ``texts`` lists with their numbers, such as "read 0 63, write 1 64"."""
    return {entry.split()[0] for text in texts for entry in text.split(",")}


def numbers(text: str, machine: str) -> list[int]:
    """Return the calls' numbers on ``machine`` ("x86_64" or "aarch64"); ``text`` lists calls, such as "read 0 63"."""
    column = {"x86_64": 1, "aarch64": 2}[machine]
    return [int(entry.split()[column]) for entry in text.split(",") if entry.split()[column] != "-"]
