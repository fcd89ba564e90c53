"""``RUN`` lines for the shell: the sandbox runs what this machine has, and other lines are refused with the reason."""

from __future__ import annotations

import pytest

from rstar2_env.adapters.harbor.set_up import can_set_up, roots_in


@pytest.mark.parametrize(
    "run",
    [
        'echo "a; no-such-tool"',
        "[ -d /app ] && echo yes",
        "wait; ulimit -n 99; type ls; f() { local a=1; }; f",
        "case $(uname -m) in x86_64) echo 1 ;; no-such-tool) echo 2 ;; esac",
        "ls /app/tmp tmp/a http://a.b/tmp /tmpfiles",
        "python3 run.py && ./build.sh && $MAKE && A=$(pwd)/a ls",
        "echo pip curl > tools.txt; grep -e apt tools.txt",
        "echo '<<' '$(no-such-tool)' # no-such-tool; no-such-tool",
        "command -v curl && env",
    ],
)
def test_a_line_whose_programs_are_here_is_run(run: str) -> None:
    assert can_set_up(run)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("sudo apt-get install -y a; b", "the command 'apt-get' needs the network"),
        ("cd /app && python3 -m pip install a && b", "the command 'python3 -m pip' needs the network"),
        ('echo "$(curl http://a.b)" > c', "the command 'curl' needs the network"),
        ("git clone http://a.b && make", "the command 'git clone' needs the network"),
        ("ls && no-such-tool --fast", "the program no-such-tool is not installed"),
        ("echo $(no-such-tool)", "the program no-such-tool is not installed"),
        ("timeout 60 pip install a || true", "the command 'pip' needs the network"),
        ("A=1 env B=2 /usr/bin/pip install a", "the command 'pip' needs the network"),
        ("sudo -E nice -n 5 timeout -k 5s 60 wget a", "the command 'wget' needs the network"),
        ("echo \"it's $(curl http://a.b) that's\"", "the command 'curl' needs the network"),
        ("cat 'a' \"/tmp/b\"", "/tmp/b refers to a file in /tmp"),
        ("ls --out=/tmp/b", "--out=/tmp/b refers to a file in /tmp"),
        ("sh -c 'echo 1 >/tmp/b'", "refers to a file in /tmp"),
        ("d=~/b ls", "d=~/b refers to a file in /tmp"),
        ('echo "' + "$(a)" * 40, "No closing quotation"),
    ],
)
def test_a_line_that_needs_more_is_refused_with_the_reason(run: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        can_set_up(run)


@pytest.mark.parametrize("run", ['["make", "all"]', "--mount=type=cache,target=/a make", "cat <<END > a"])
def test_a_line_in_a_form_of_docker_is_not_for_the_shell(run: str) -> None:
    assert not can_set_up(run)


def test_programs_of_earlier_lines_are_known() -> None:
    assert can_set_up("no-such-tool --fast", ["no-such-tool"])


def test_the_folders_at_the_root_are_found_in_every_word() -> None:
    run = "cp /a/b --to=/c/d 'e /f' && PATH=g:/h ls http://i.j k/l"
    assert roots_in(run) == ["a", "c", "f", "h"]
