"""The whole system on this machine: bus, store, judge and services as supervised processes."""
