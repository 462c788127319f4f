"""Installs the executables that the simulator and checks need: releases, or builds from source."""
