"""Pictures, letters and colours of Bramble as text files, and their loader."""
