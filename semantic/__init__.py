"""Derived and rebuildable: everything that is computed from promoted notes."""
