"""Studies: compare ways of training over several seeds, with the statistics that a claim about learning needs.

`plan` is what a study runs, `trial` one run of one arm in one process, `stats` the comparison, `results` the data,
`report` the page and the tables.
`zelda study` (cli/commands/study.py) starts the trials.
"""
