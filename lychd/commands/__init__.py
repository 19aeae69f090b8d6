"""The command door: one grammar, one act a command, shared by `lychd` and `manage.py`.

`entries/` holds every command with its options and help, `grammar.py` reads a line by them, and neither imports Django;
the modules beside them hold the acts, each of which takes the parsed options and gives back what there is to tell.
"""
