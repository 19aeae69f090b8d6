"""The curator's edge: what a note says, and three decisions about it, each a POST with the version shown."""
