"""Simulated points: a load on a drive below a kernel's block layer, in virtual time (crate ``dbdyno-blk``)."""
