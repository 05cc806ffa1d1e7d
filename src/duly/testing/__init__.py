"""The testing kit: what tests of duly, and of jobs that use it, are made with."""
