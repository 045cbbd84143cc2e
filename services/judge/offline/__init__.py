"""Judging outside the service: `zelda judge segments` and `zelda judge compare`."""
