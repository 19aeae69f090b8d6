"""The tags that templates use to show records."""
