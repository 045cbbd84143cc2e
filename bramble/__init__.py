"""Bramble: a free Game Boy Color game with the RAM layout of Oracle of Seasons."""
