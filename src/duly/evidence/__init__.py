"""Evidence: what is seen in the ledger. Reads only; every view rests on one judgement of a window (`verdict`)."""
