"""What `zelda run start` adds for its user: env runners for this machine, and how long the run will take."""
