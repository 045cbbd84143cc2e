"""The facts of a segment, from decoded states to the text of a prompt."""
