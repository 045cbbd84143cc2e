"""Other ways over the legs of a trajectory, to be imitated: won fights, ways back, the policy's own passes."""
