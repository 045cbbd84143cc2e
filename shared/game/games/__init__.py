"""Which games exist: ROM identification, capabilities, milestones."""
