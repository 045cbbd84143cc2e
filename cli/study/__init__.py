"""What `zelda study` adds to the studies: the command that repeats one, and the labels of its arms."""
