"""Setting up a clone with the standard library alone: the virtual environment, the packages, the working copy.

Nothing in this room may import what is not in a bare Python.
"""
