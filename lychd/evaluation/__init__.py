"""How well the archive finds: reading sets with human judgements, asked through the operations (`lychd evaluate`)."""
