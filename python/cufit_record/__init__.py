# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `cufit mem record`: switches torch's memory history on
once CUDA is initialised, and writes a snapshot when memory runs out, on SIGUSR1, or at the end.
Never stops or changes the program it runs in: what fails here is said on stderr and the program
goes on. Python 3.6 and later, torch 2.0 and later."""
