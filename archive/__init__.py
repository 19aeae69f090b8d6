"""Truth: namespaces, notes, lexical recall, receipts."""
