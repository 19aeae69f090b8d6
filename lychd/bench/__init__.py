"""How fast the archive is, always beside something bare that does the same to the same rows (`lychd bench`)."""
