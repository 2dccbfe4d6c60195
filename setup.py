"""Ship the stages and the program library inside the wheel, as cosim/shipped/."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("fmus", "stages")


class BuildWithPrograms(build_py):
    """Copy `fmus/` and `stages/` beside the modules."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if self.editable_mode:
            return  # the checkout has them
        for name in SHIPPED:
            target = Path(self.build_lib) / "cosim" / "shipped" / name
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(name, target, ignore=shutil.ignore_patterns("*.fmu", "__pycache__"))


setup(cmdclass={"build_py": BuildWithPrograms})
