"""What is measured of duly, and the floors that it is measured against: one file each. Peers are in `bench.peers`."""
