"""Composition: settings, addresses, the worker, the embedded servers. Nothing imports it."""
