"""The Modelica compiler: a source, checked and flattened by rumoca, becomes an FMU."""

from cosim.modelica.build import BuiltFmu, build_fmu

__all__ = ["BuiltFmu", "build_fmu"]
