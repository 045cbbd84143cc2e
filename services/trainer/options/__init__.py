"""Options: macros that the policy may choose beside the eight actions; see README.md."""
