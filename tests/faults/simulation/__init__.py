"""A deterministic simulation of the whole ring in one process: real handlers, simulated time, bus, store and faults."""
