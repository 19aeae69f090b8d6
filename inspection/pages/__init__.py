"""The pages for people: a home, lists, notes, receipts. They only read; decisions stand in archive.curation."""
