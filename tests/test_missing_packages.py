"""What a user is told where an optional or platform-bound package is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run_without(package, *arguments, cwd):
    code = (
        f"import sys; sys.modules[{package!r}] = None; from cosim.cli import main; sys.exit(main({list(arguments)!r}))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=120)


def test_without_pybullet_it_says_what_to_install(tmp_path):
    done = run_without("pybullet", "run", "pendulum", "--no-plot", cwd=tmp_path)
    assert done.returncode == 1
    assert "core-missing" in done.stderr
    assert "wheels exist for CPython 3.11 to 3.13" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_matplotlib_there_is_no_plot_and_a_word_about_it(tmp_path):
    done = run_without("matplotlib", "run", "pendulum", "--stop-time", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usd-cosim[view]" in done.stdout
    assert (tmp_path / "runs" / "pendulum" / "trace.csv").is_file()


@pytest.mark.parametrize("package", ["pandas", "ziglang"])
def test_optional_packages_are_not_needed_to_run(tmp_path, package):
    done = run_without(package, "run", "pendulum", "--stop-time", "0.1", "--no-plot", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
