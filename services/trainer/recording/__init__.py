"""Records segments while games are played: builds their archives and creates them in the store."""
