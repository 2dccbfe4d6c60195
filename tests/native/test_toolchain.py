"""Finding and calling C compilers, and the cache of what they made."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cosim.diagnostic import CosimError
from cosim.native import toolchain
from cosim.native.toolchain import cache_folder, compile_shared, find_compiler, library_suffix

SOURCE = """
#include <math.h>
#ifndef OFFSET
#define OFFSET 0
#endif
#if defined _WIN32
__declspec(dllexport)
#endif
double shifted(double x) { return sqrt(x) + OFFSET; }
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "shifted.c"
    path.write_text(SOURCE)
    return path


def _call(library: Path, x: float) -> float:
    function = ctypes.CDLL(str(library)).shifted
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    return float(function(x))


def test_compiles_with_defines_and_caches_by_content(source: Path) -> None:
    library = compile_shared([source], name="shifted", defines={"OFFSET": "2"})
    assert library.name == f"shifted{library_suffix()}"
    assert library.is_relative_to(cache_folder())
    assert _call(library, 9.0) == 5.0
    written = library.stat().st_mtime_ns
    assert compile_shared([source], name="shifted", defines={"OFFSET": "2"}) == library
    assert library.stat().st_mtime_ns == written
    other = compile_shared([source], name="shifted", defines={"OFFSET": "3"})
    assert other != library
    assert _call(other, 9.0) == 6.0


def test_headers_are_part_of_the_content(source: Path, tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    header = tmp_path / "inc" / "offset.h"
    header.write_text("#define OFFSET 4\n")
    source.write_text('#include "offset.h"\n' + SOURCE)
    first = compile_shared([source], name="shifted", include_dirs=[header.parent])
    header.write_text("#define OFFSET 5\n")
    second = compile_shared([source], name="shifted", include_dirs=[header.parent])
    assert (_call(first, 1.0), _call(second, 1.0)) == (5.0, 6.0)


def test_parallel_compilation_of_the_same_source(source: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from cosim.native.toolchain import compile_shared;"
        "print(compile_shared([Path(sys.argv[1])], name='shifted'))"
    )
    with ThreadPoolExecutor(4) as pool:
        runs = list(
            pool.map(
                lambda _: subprocess.run(
                    [sys.executable, "-c", code, str(source)], capture_output=True, text=True, check=True
                ),
                range(4),
            )
        )
    (library,) = {Path(run.stdout.strip()) for run in runs}
    assert _call(library, 4.0) == 2.0
    assert [p.name for p in library.parent.iterdir()] == [library.name], "nothing is left beside it"


def test_a_source_that_does_not_compile_says_why(source: Path) -> None:
    source.write_text("double broken( { return 1; }\n")
    with pytest.raises(CosimError) as error:
        compile_shared([source], name="broken")
    (found,) = error.value.diagnostics
    assert found.code == "toolchain-failed"
    assert "broken.c:1" in found.message or "shifted.c:1" in found.message


def test_cc_is_taken_with_its_arguments(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which("gcc") or shutil.which("cc")
    if program is None:
        pytest.skip("no system compiler here")
    monkeypatch.setenv("CC", f"{program} -DOFFSET=7")
    assert find_compiler().command == (program, "-DOFFSET=7")
    assert _call(compile_shared([source], name="shifted"), 1.0) == 8.0


def test_cc_that_is_no_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O3")
    with pytest.raises(CosimError) as error:
        find_compiler()
    assert error.value.diagnostics[0].code == "toolchain-missing"
    assert "no-such-compiler" in error.value.diagnostics[0].message


def test_without_any_compiler_the_cure_is_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CosimError) as error:
        find_compiler()
    (found,) = error.value.diagnostics
    assert found.code == "toolchain-missing"
    assert "pip install" in found.hint
    assert "usd-cosim[zig]" in found.hint


def test_ziglang_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    assert find_compiler().command == (sys.executable, "-m", "ziglang", "cc")


@pytest.mark.slow
def test_ziglang_compiles_and_cross_compiles(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    assert _call(compile_shared([source], name="shifted"), 16.0) == 4.0
    other = compile_shared([source], name="shifted", target="aarch64-linux-gnu.2.17")
    # ELF, and the machine AArch64 (0xB7).
    content = other.read_bytes()
    assert content[:4] == b"\x7fELF"
    assert content[18] == 0xB7


def test_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSIM_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("COSIM_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform.startswith("linux"):
        assert cache_folder() == tmp_path / "xdg" / "usd-cosim"


def test_no_fused_multiply_add(source: Path) -> None:
    """x·x − x² rounded is zero; a fused one would keep the rounding error of the product."""
    source.write_text("double residue(double x) { double y = x * x; return x * x - y; }\n")
    function = ctypes.CDLL(str(compile_shared([source], name="residue", flags=["-march=native"]))).residue
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    assert function(1.1) == 0.0
