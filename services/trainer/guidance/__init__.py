"""Guidance: sparse suggestions of models that the policy sees and may follow. The policy always acts itself."""
