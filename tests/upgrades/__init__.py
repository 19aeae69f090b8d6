"""Archives that older commits made, as dumps, and what becomes of them. `make.sh` says how they were made."""
