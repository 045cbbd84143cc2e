"""The soak test: rounds of a complete system under faults, as one campaign that can be resumed."""
