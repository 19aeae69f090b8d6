"""The pages for people: a home, lists, notes and receipts. No GET changes anything; decisions stand in archive.curation."""
