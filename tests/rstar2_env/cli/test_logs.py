"""What libraries log about a file of another person reaches the terminal without control characters."""

from __future__ import annotations

import io
import json
import logging
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_runs import ESCAPES

from rstar2_env.cli._logs import clean_logs
from rstar2_env.core.secret import Secret

SHOWN = r"\x1b]0;title\x07"


@pytest.fixture
def cleaned() -> Iterator[None]:
    kept = logging.getLogRecordFactory(), warnings.formatwarning
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    logging.setLogRecordFactory(logging.LogRecord)  # an earlier test may have cleaned the logs of this process
    clean_logs()
    yield
    logging.setLogRecordFactory(kept[0])
    warnings.formatwarning = kept[1]
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("of_a_library")
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


@pytest.mark.usefixtures("cleaned")
def test_a_log_record_is_cleaned_with_its_arguments(logged: io.StringIO) -> None:
    logging.getLogger("of_a_library").warning("100 %% of %s", f"config{ESCAPES}")
    assert logged.getvalue().startswith(f"100 % of config{SHOWN}")
    assert "\x1b" not in logged.getvalue()


@pytest.mark.usefixtures("cleaned")
def test_a_log_record_whose_arguments_do_not_fit_is_cleaned(logged: io.StringIO) -> None:
    logging.getLogger("of_a_library").warning(f"%d {ESCAPES}", "x")
    assert logged.getvalue().startswith(f"%d {SHOWN}")


@pytest.mark.usefixtures("cleaned")
def test_a_log_record_whose_argument_cannot_be_shown_raises_nothing(logged: io.StringIO) -> None:
    class Unshown:
        def __str__(self) -> str:
            raise AttributeError("no text")

    logging.getLogger("of_a_library").warning(f"%s {ESCAPES}", Unshown())
    assert logged.getvalue().startswith(f"%s {SHOWN}")


@pytest.mark.usefixtures("cleaned")
def test_the_traceback_of_a_log_record_is_cleaned(logged: io.StringIO) -> None:
    try:
        raise ValueError(ESCAPES)
    except ValueError:
        logging.getLogger("of_a_library").exception("failed")
    assert f"ValueError: {SHOWN}" in logged.getvalue()
    assert "\x1b" not in logged.getvalue()


@pytest.mark.usefixtures("cleaned")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_exceptions_of_threads_and_of_finalizers_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise ValueError(ESCAPES)

    class Failing:
        def __del__(self) -> None:
            fail()

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Failing()
    said = capsys.readouterr().err
    assert said.count(f"ValueError: {SHOWN}") == 2
    assert "\x1b" not in said


@pytest.mark.usefixtures("cleaned")
def test_logs_are_cleaned_once() -> None:
    made = logging.getLogRecordFactory()
    clean_logs()
    assert logging.getLogRecordFactory() is made


@pytest.mark.usefixtures("cleaned")
def test_a_warning_and_an_uncaught_exception_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    assert SHOWN in warnings.formatwarning(ESCAPES, UserWarning, "x.py", 1)
    token = Secret("planted-token-91ab")
    sys.excepthook(ValueError, ValueError(f"{ESCAPES} {token.reveal()}"), None)
    said = capsys.readouterr().err
    assert SHOWN in said
    assert token.reveal() not in said


def test_what_transformers_says_about_a_model_is_cleaned(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    config = json.loads((folder / "config.json").read_text())
    rope = {"rope_type": f"no{ESCAPES}", "factor": 2.0, "rope_theta": 1e4}
    (folder / "config.json").write_text(json.dumps({**config, "rope_scaling": rope, "rope_parameters": rope}))
    call = "from rstar2_env.cli import main; main()"
    words = ["eval", "rstar2/MathTool-v0", "--model", str(folder), "--problems", "arithmetic", "-n", "1"]
    done = subprocess.run([sys.executable, "-c", call, *words], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert SHOWN in done.stderr
    assert "cannot be loaded: KeyError" in " ".join(done.stderr.split())
    assert not set("\x1b\x07\x9b\u202e") & set(done.stdout + done.stderr)
