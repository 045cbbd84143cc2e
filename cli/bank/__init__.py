"""What the bank of recorded play says about a judge's answers."""
