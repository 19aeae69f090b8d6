"""Every order in which operations can meet, one after the other: real threads, real transactions, chosen turns.

docs/testing.md says how to read a schedule and how to run it again alone.
"""

from tests.racing.actors import Crew, Hung
from tests.racing.exploration import Explored, Run, explore

__all__ = ["Crew", "Explored", "Hung", "Run", "explore"]
