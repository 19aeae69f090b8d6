"""Faults that are planted on purpose, one at a time: each must turn a named test red, or the test proves nothing.

`python -m tests.faults` plants them all; docs/testing.md says how to add one.
"""
