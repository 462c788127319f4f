"""Installs the executables that simulator and checks need, released or built from source."""
