"""The local stack: bus, store, rules judge and the five services as supervised processes on this machine."""
