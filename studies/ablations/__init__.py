"""What each technique adds to the method that finishes the vale: the method trained without it."""
