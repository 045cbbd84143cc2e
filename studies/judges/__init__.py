"""A benchmark for judges: a frozen bank of recorded play whose progress is known, and what judges make of it.

`bank` is the file of actions, `replay` makes segments of it again, `asking` asks judges, `answers` keeps what they say,
and `results` compares it with the truth. `python -m studies.judges.make_bank` made the bank; `zelda judge bench` is the
command.
"""
