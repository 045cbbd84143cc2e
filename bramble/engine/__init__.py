"""The game's program: C and assembly sources, the built `engine.gbc`, and the build."""
