"""What makes and checks the deployment files; no service imports it and no image contains it."""
