"""cosim: couple USD rigid-body physics with FMUs."""
