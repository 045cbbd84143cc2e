"""The chart's values as typed models: defaults, constraints and descriptions in one place.

values.yaml, values.schema.json and the table in the chart's README are generated from these classes.
"""

from deploy.generate.values.root import Values

__all__ = ["Values"]
