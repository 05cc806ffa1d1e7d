"""Peers, on the same work: one file each, all alike, each used as its own documentation has it.

Where a peer has no key that outlives its run, the documented idiom for one is used, or a small thing by hand, and the sentence
that it prints says so. `bench/environments` has what each needs.
"""
