"""The REST interface of the coordinator: FastAPI routers, the guard in front of them, errors as sentences."""
