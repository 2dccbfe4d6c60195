"""FMUs in a process of their own: nothing that they do takes the host down."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cosim.component import Component
from cosim.diagnostic import FmuError, StepError
from cosim.fmi import FmuComponent, FmuCrash, IsolatedFmuComponent
from tests.fmi.fmi_zoo import Bench, build, build_exchange

VERSIONS = ("2.0", "3.0")


def _bench(path: Path, *names: Any, **options: Any) -> Bench:
    return Bench(path, *names, kind=IsolatedFmuComponent, **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_isolated_is_the_same_bit_for_bit(tmp_path: Path, version: str) -> None:
    path = build(tmp_path, version)
    traces = []
    for kind in (FmuComponent, IsolatedFmuComponent):
        with Bench(path, kind=kind, stop="1") as bench:
            assert isinstance(bench.component, Component)
            bench.start(gain=1.7)
            trace = [bench.get()]
            for k in range(10):
                bench.set(u=0.1 * k, b_in=k % 2)
                bench.step()
                trace.append(bench.get())
            text = [f"n{k}" for k in range(len(bench.inputs) - len(bench.numeric_in))]
            bench.component.set_text(text)
            trace.append(bench.component.get_text())
            bench.component.hold(bench.port("gain"), 5.0)
            trace.append(bench.get())
            bench.component.release(bench.port("gain"))
            trace.append(bench.get())
            traces.append(trace)
    assert traces[0] == traces[1]


def test_states_live_in_the_worker(tmp_path: Path) -> None:
    for path in (build(tmp_path), build_exchange(tmp_path, "3.0")):
        outputs = None if path.name == "zoo.fmu" else ["h", "v"]
        with _bench(path, ["u"], outputs) as bench:
            bench.start()
            bench.set(u=1.0)
            bench.step()
            state = bench.component.save()
            before = bench.get()
            bench.step()
            after = bench.get()
            bench.component.restore(state)
            assert bench.get() == before
            bench.tick = 1
            bench.step()
            assert bench.get() == after
            del state
            bench.step()
            with pytest.raises(StepError, match="fmu-state-foreign"), _bench(path, ["u"], outputs) as other:
                other.start()
                bench.component.restore(other.component.save())


def _until_it_breaks(bench: Bench) -> StepError:
    with pytest.raises(StepError) as error:
        bench.start()
        bench.set(u=2.0)
        for _ in range(10):
            bench.step()
            assert bench.get()["y"] == 2.0
    assert bench.tick == 5
    return error.value


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("abort()", "SIGABRT"),
        ("*(volatile int *)8 = 1", "SIGSEGV"),
        ("overflow(0)", "SIGSEGV"),
        ("raise(SIGKILL)", "SIGKILL"),
        ("exit(0)", "ended itself with exit code 0"),
        ("_exit(3)", "ended itself with exit code 3"),
        ('(puts("so long"),fflush(stdout),abort())', "so long"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals have other names there")
def test_a_crash_is_named_and_the_host_goes_on(tmp_path: Path, act: str, words: str) -> None:
    with _bench(build(tmp_path, "2.0", f"HOSTILE={act}"), ["u"], ["y"]) as bench:
        error = _until_it_breaks(bench)
        assert isinstance(error, FmuCrash)
        for part in (words, "/P (zoo.fmu)", "t = 0.5 s", "DoStep"):
            assert part in str(error)
        with pytest.raises(StepError, match="fmu-not-running"):
            bench.component.step(6, 1)


@pytest.mark.parametrize("act", ["for(;;)", "for(;;)usleep(1000)"])
@pytest.mark.skipif(sys.platform == "win32", reason="usleep")
def test_a_hang_is_ended(tmp_path: Path, act: str) -> None:
    with _bench(build(tmp_path, "2.0", f"HOSTILE={act}"), ["u"], ["y"], deadline=0.5) as bench:
        error = _until_it_breaks(bench)
        assert error.diagnostics[0].code == "fmu-deadline"
        assert "0.5 s" in str(error)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX calls")
def test_what_an_fmu_does_to_its_process_stays_there(tmp_path: Path) -> None:
    before = Path.cwd()
    act = 'if(chdir("/")||close(1)||close(2))abort();signal(SIGINT,SIG_IGN)'
    path = build(tmp_path, "2.0", f"HOSTILE=({{{act};}})")
    with _bench(path, ["u"], ["y"]) as bench:
        bench.start()
        for _ in range(5):
            bench.step()
        bench.get()
    assert Path.cwd() == before
    os.fstat(1)


def test_a_flood_of_output_does_not_stop_it(tmp_path: Path) -> None:
    flood = 'for(int i=0;i<20000;i++)puts("a line that nobody wants to read, again and again");'
    with _bench(build(tmp_path, "2.0", f"HOSTILE={flood}"), ["u"], ["y"]) as bench:
        bench.start()
        for _ in range(7):
            bench.step()


def test_errors_keep_their_words(tmp_path: Path) -> None:
    with _bench(build(tmp_path, "2.0", 'FAULT_CALL="DoStep"', "FAULT_STATUS=3"), ["u"], ["y"]) as bench:
        error = _until_it_breaks(bench)
        assert error.diagnostics[0].code == "fmu-call-failed"
        assert "cannot DoStep: 7 is above 6.50" in str(error)
    with (
        _bench(build(tmp_path, "2.0", token="{other}"), ["u"], ["y"]) as bench,
        pytest.raises(FmuError, match="fmu-instantiate-failed"),
    ):
        bench.start()


def test_a_crash_while_freeing_is_a_warning(tmp_path: Path) -> None:
    with _bench(build(tmp_path, "2.0", "FREE_ABORTS"), ["u"], ["y"]) as bench:
        bench.start()
        bench.step()
    assert bench.log.items[-1].code == "fmu-crashed"
    assert not bench.log.errors


@pytest.mark.skipif(sys.platform == "win32", reason="kill")
def test_a_worker_that_is_gone_and_one_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _bench(build(tmp_path), ["u"], ["y"]) as bench:
        bench.start()
        bench.component._process._popen.kill()
        with pytest.raises(FmuCrash, match="SIGKILL"):
            bench.step()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    started = time.perf_counter()
    with _bench(build(tmp_path), ["u"], ["y"]) as bench, pytest.raises(StepError, match="fmu-worker-failed"):
        bench.start()
    assert time.perf_counter() - started < 30.0
