"""Peers, on the same work: one file each, all alike, each used as its own documentation has it.

Where a peer has no key that outlives its run, and its documentation has an idiom for one, that is used, or a small thing by
hand; else it has none, and does what it is offered again. The sentence that it prints says which. `bench/environments` has what
each needs.
"""
