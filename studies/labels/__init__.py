"""The labels of a study's reward models, and how right they are.

`labelers` label a trial's own segments: the judge, the judge with permuted scores, or an oracle; `noise` degrades the
judge. `votes` reads what a language model said about the bank, `bank_store` records those segments once per study, and
`bank_model` trains on them in each trial. `accuracy` compares labels with the truth.
"""
