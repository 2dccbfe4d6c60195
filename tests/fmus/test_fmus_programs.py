"""Every program of the library: right, described, valid, and the same in both FMI versions."""

from __future__ import annotations

import csv
import dataclasses

import fmpy.validation
import numpy as np
import pytest
from fmus_experiments import EXPERIMENTS
from fmus_harness import LIBRARY, VERSIONS, Array, description, fmu, outputs_of, simulate

PROGRAMS = sorted(EXPERIMENTS)
# Signals of any quantity: a unit would refuse metres here and volts there.
GENERIC = {"FilteredDerivative", "FilteredSignal", "Oscillator", "PID"}


def assert_close(actual: Array, expected: Array, name: str, tolerance: float = 1e-6) -> None:
    """Equal within a fraction of the reference's largest value."""
    scale = max(float(np.max(np.abs(expected))), 1e-9)
    assert np.all(np.isfinite(actual)), name
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale, err_msg=name)


def test_every_program_has_an_experiment() -> None:
    assert sorted(path.stem for path in LIBRARY.glob("*.mo")) == PROGRAMS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("parameters", ["own", "varied"])
def test_outputs_equal_the_reference(parameters: str, program: str, version: str) -> None:
    experiment = EXPERIMENTS[program]
    run = experiment.run if parameters == "own" else experiment.varied
    expected = experiment.reference(run)
    actual = simulate(program, version, run)
    assert set(actual) == set(expected), "reference and program declare the same outputs"
    for name, values in expected.items():
        if name in experiment.exact:
            np.testing.assert_array_equal(actual[name], values, err_msg=name)
        else:
            assert_close(actual[name], values, name, experiment.tolerance)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_experiment_moves_every_output(program: str) -> None:
    """A comparison with a constant would prove little."""
    experiment = EXPERIMENTS[program]
    expected = experiment.reference(experiment.run)
    assert {name for name, values in expected.items() if np.ptp(values) == 0.0} == set(experiment.still)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_parameter_has_an_effect(program: str) -> None:
    """A front end may decide an `if` over parameters once and for all: then the parameter would be a decoy."""
    experiment = EXPERIMENTS[program]
    variables = description(program, "3.0").modelVariables

    def outputs(**parameters: float) -> Array:
        found = simulate(program, "3.0", dataclasses.replace(experiment.run, parameters=parameters))
        return np.array(list(found.values()))

    own, varied = outputs(), outputs(**experiment.settings)
    for name, value in experiment.settings.items():
        others = {other: setting for other, setting in experiment.settings.items() if other != name}
        alone = np.array_equal(outputs(**{name: value}), own)
        assert not (alone and np.array_equal(outputs(**others), varied)), f"{name} has no effect"
    settable = {v.name for v in variables if v.causality == "parameter" and v.name != "sample_period_s"}
    assert settable == set(experiment.settings)


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_fmi_versions_agree_to_the_bit(program: str) -> None:
    second, third = (simulate(program, version, EXPERIMENTS[program].varied) for version in VERSIONS)
    for name in second:
        np.testing.assert_array_equal(second[name], third[name], err_msg=name)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_fmpy_finds_no_fault(program: str, version: str) -> None:
    assert fmpy.validation.validate_fmu(str(fmu(program, version))) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_variable_says_what_it_is(program: str, version: str) -> None:
    model = description(program, version)
    assert model.description
    assert [v.name for v in model.modelVariables if not v.description and not v.derivative] == []
    if program not in GENERIC:
        assert [v.name for v in model.modelVariables if v.type in ("Real", "Float64") and not v.unit] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_published_reference_is_current_and_small(program: str) -> None:
    experiment = EXPERIMENTS[program]
    with (LIBRARY / f"{program}_ref.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["time", *outputs_of(program)]
    assert len(rows) <= 200
    table = np.array(rows, float)
    np.testing.assert_array_equal(table[:, 0], experiment.run.time)
    expected = experiment.reference(experiment.run)
    for name, column in zip(header[1:], table[:, 1:].T, strict=True):
        assert_close(column, expected[name], name)


@pytest.mark.parametrize("program", PROGRAMS)
def test_published_inputs_are_those_of_the_experiment(program: str) -> None:
    run = EXPERIMENTS[program].run
    file = LIBRARY / f"{program}_in.csv"
    assert file.exists() == bool(run.inputs)
    if run.inputs:
        with file.open(newline="") as stream:
            header, *rows = csv.reader(stream)
        assert header == ["time", *run.inputs]
        table = np.array(rows, float)
        np.testing.assert_allclose(table[:-1, 1:].T, [run.inputs[name] for name in header[1:]], rtol=1e-12, atol=1e-12)
