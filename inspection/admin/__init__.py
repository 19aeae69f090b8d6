"""Django's own admin over every table, for looking alone: by grant, in a snapshot, without text and vectors (5.15)."""
