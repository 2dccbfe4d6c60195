"""Compiling and loading native code."""
