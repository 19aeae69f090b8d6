"""The command door: one grammar, one act a command, shared by `lychd` and `manage.py`.

`grammar.py` holds every command, option and help text and imports nothing of Django; the modules beside it hold the
acts, each of which takes the parsed options and gives back what there is to tell.
"""
