"""The curator's edge: what a note says, and the three decisions about it. Every decision is a POST with the version shown."""
