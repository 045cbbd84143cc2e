"""The three Grafana dashboards as Python data: is it learning, is it flowing, what does it cost."""

from deploy.generate.dashboards import cost, flow, learning
from deploy.generate.dashboards.model import Dashboard

DASHBOARDS: tuple[Dashboard, ...] = (learning.DASHBOARD, flow.DASHBOARD, cost.DASHBOARD)

__all__ = ["DASHBOARDS", "Dashboard"]
