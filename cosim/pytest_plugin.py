"""For pytest: fixtures `cosim_run` and `assert_trace`; regression cases collected as tests.

The fixtures are there wherever the package is installed. Cases, a program or stage with its reference
trace beside it (see `cosim.regression`), are collected with `pytest --cosim`, or always with

    [tool.pytest.ini_options]
    cosim_cases = true

Nothing of the package is loaded before a test needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from cosim.case import Case
    from cosim.compare import Comparison, Tolerance
    from cosim.result import Results

REFERENCE_ENDINGS = ("_ref.csv", "_out.csv")


class RunFunction(Protocol):
    """What `cosim_run` is."""

    def __call__(self, stage: Path | str, **options: Any) -> Results:
        """Run a stage; options as for `cosim.simulate`."""


class TraceFunction(Protocol):
    """What `assert_trace` is."""

    def __call__(
        self,
        results: Results,
        reference: Results | Path | str,
        *,
        level: str = "tube",
        tolerance: Tolerance | None = None,
        columns: Sequence[str] | None = None,
    ) -> Comparison:
        """Fail the test with a table of the worst columns if a trace differs; the comparison otherwise."""


@pytest.fixture
def cosim_run(request: pytest.FixtureRequest) -> RunFunction:
    """Run a stage: `cosim_run("robot.usda", stop=2, step="1/240")`; paths may be relative to the test's folder."""

    def run(stage: Path | str, **options: Any) -> Results:
        import cosim

        return cosim.simulate(_beside(request, stage), **options)

    return run


@pytest.fixture
def assert_trace(request: pytest.FixtureRequest) -> TraceFunction:
    """Compare a trace: `assert_trace(results, "robot_ref.csv")`; paths may be relative to the test's folder."""

    def check(
        results: Results,
        reference: Results | Path | str,
        *,
        level: str = "tube",
        tolerance: Tolerance | None = None,
        columns: Sequence[str] | None = None,
    ) -> Comparison:
        __tracebackhide__ = True
        expected = _beside(request, reference) if isinstance(reference, Path | str) else reference
        found = results.compare(expected, level=level, tolerance=tolerance, columns=columns)
        if not found.passed:
            pytest.fail(f"the trace differs from its reference\n{found.table()}")
        return found

    return check


def _beside(request: pytest.FixtureRequest, name: Path | str) -> Path:
    """A path as given, else relative to the folder of the test; what is in neither is left for the error to name."""
    path = Path(name)
    beside = request.path.parent / path
    return beside if beside.exists() and not path.is_absolute() else path


# ---- cases as tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the command line and of the configuration."""
    group = parser.getgroup("cosim")
    group.addoption("--cosim", action="store_true", help="collect regression cases of cosim (X_ref.csv beside X)")
    group.addoption("--cosim-level", choices=("exact", "tube"), help="default: exact where the reference allows it")
    parser.addini("cosim_cases", "collect regression cases of cosim", type="bool", default=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A reference trace with its subject, or an FMU with experiments, is a file of tests where that was asked for."""
    config = parent.config
    if not (config.getoption("cosim") or config.getini("cosim_cases")):
        return None
    if not file_path.name.endswith((*REFERENCE_ENDINGS, ".fmu")):
        return None
    collected: CaseFile = CaseFile.from_parent(parent, path=file_path)
    return collected


class CaseFile(pytest.File):
    """A reference trace whose subjects are the tests, or an FMU whose experiments are."""

    def collect(self) -> Iterator[CaseItem]:
        """One test per program or stage that has this reference, or per experiment of the FMU."""
        from cosim.case import cases_inside, cases_of_reference

        is_fmu = self.path.suffix.lower() == ".fmu"
        for case in cases_inside(self.path) if is_fmu else cases_of_reference(self.path):
            yield CaseItem.from_parent(self, name=case.name, case=case)


class CaseItem(pytest.Item):
    """A regression case as a test."""

    def __init__(self, *, case: Case, **options: Any) -> None:
        super().__init__(**options)
        self.case = case

    def runtest(self) -> None:
        """Run and compare.

        Raises:
            CaseFailed: it did not run, or differs.
        """
        from cosim.regression import Settings, run_case

        outcome = run_case(self.case, Settings(level=self.config.getoption("cosim_level")))
        if not outcome.passed:
            raise CaseFailed(f"{self.case.subject}\n{outcome.explain()}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report of a difference is its table, without a traceback."""
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the test is."""
        return self.path, None, f"cosim case {self.case.name}"


class CaseFailed(Exception):
    """A regression case did not run, or its trace differs; the text says what."""
