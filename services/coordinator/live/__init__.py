"""Live updates of runs: the poller, the broadcaster, and the page that shows them."""
