"""The driver under its former module path: a Ray job submitted by an earlier release of the trainer starts here."""

import runpy

if __name__ == "__main__":
    runpy.run_module("services.trainer.driver", run_name="__main__")
