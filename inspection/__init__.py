"""Reads only: pages and endpoints that show what the archive holds and change nothing."""
